/* SPDX-License-Identifier: MIT */
/* Private to attach: what does an image consist of? */
#ifndef ATTACH_IMAGE_IMAGE_INTERNAL_H
#define ATTACH_IMAGE_IMAGE_INTERNAL_H

#include "attach/image.h"

enum {
	/* A stop copies kilobytes in some hundred ranges. A kernel sample has up to 2.5 MiB, and
	 * each of its ranges takes at least 24 bytes. */
	ATTACH_IMAGE_MAX_RANGES = 1 << 17,
	/* We do not sort fewer ranges. */
	IMAGE_UNORDERED_MAX = 64,
	/* Notes: maps, native chain, profile context. */
	IMAGE_NOTES = 8,
	IMAGE_NOTE_NAME = 16,
	/* Bits of the page filter; a power of 2. */
	IMAGE_FILTER_BITS = 4096,
	IMAGE_HITS = 256,
};

/** [start, start+wanted), at `offset` in the arena; `len` bytes of it were read. */
struct image_range {
	uint64_t start;
	uint64_t len;
	size_t wanted;
	size_t offset;
};

/** A range, sorted by start. No range up to this one ends after `last`. */
struct image_location {
	uint64_t start, last;
	uint32_t index;
};

struct image_note {
	char name[IMAGE_NOTE_NAME];
	void *bytes;
	size_t len;
};

struct attach_image {
	struct attach_registers registers;
	struct image_range *ranges;
	size_t range_count, range_size;
	struct image_location *locations; /* of the first location_count ranges */
	size_t location_count, location_size;
	size_t planned; /* ranges before this index were read or given up */
	size_t last_hit;
	uint32_t hits[IMAGE_HITS]; /* ranges of recent lookups, by a hash of the address */
	uint64_t filter[IMAGE_FILTER_BITS / 64]; /* one bit per hashed page that a range touches */
	uint8_t *arena;
	size_t arena_len, arena_size;
	struct image_note notes[IMAGE_NOTES];
	size_t note_count;
	const struct attach_reader *behind;
	bool keep;
	struct attach_reader reader, reader_behind;
};

/** attach_image_add(), but extend the range added last if the bytes begin where it ends. */
int image_append(struct attach_image *image, uint64_t start, const void *bytes, size_t len,
		 struct failure *why);

/**
 * Take arena bytes to which ranges can be moved. Stopped window: yes; rarely allocates.
 * @return false if there is no room.
 */
bool image_make_room(struct attach_image *image, size_t len, size_t *ret_offset);

#endif
