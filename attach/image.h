/* SPDX-License-Identifier: MIT */
/* What did one stop read? */
#ifndef ATTACH_IMAGE_H
#define ATTACH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/reader.h"

/**
 * The registers and ranges of memory that one stop read. Every walk reads images alone. Callers
 * reuse an image from stop to stop, so the steady state allocates nothing.
 */
struct attach_image;

struct attach_image *attach_image_create(void);
void attach_image_destroy(struct attach_image *image);
/** Forget the ranges; keep the allocated memory. */
void attach_image_clear(struct attach_image *image);

struct attach_registers *attach_image_registers(struct attach_image *image);

/**
 * Ask for [address, address+len) in the next round; at most ATTACH_IMAGE_MAX_BYTES in all. Ranges
 * may overlap.
 * @return 0, or -1 with FAILURE_LIMIT or FAILURE_NO_MEMORY.
 */
int attach_image_want(struct attach_image *image, struct remote_addr address, size_t len,
		      struct failure *why);

/** Add bytes that the caller already has. */
int attach_image_add(struct attach_image *image, struct remote_addr address, const void *bytes,
		     size_t len, struct failure *why);

/**
 * Add the ranges of a record, see attach/bpf_program.h.
 * @param bytes Hostile: @p len bytes, aligned to 8.
 * @return false if memory ran out or the ranges are damaged; the image has those before.
 */
bool attach_image_add_ranges(struct attach_image *image, const void *bytes, size_t len);

/**
 * Find the first part of [address, address+len), as far as one range holds it.
 * @return Borrowed bytes, or NULL; *ret_len is the number of bytes, at most @p len.
 */
const void *attach_image_peek(const struct attach_image *image, struct remote_addr address,
			      size_t len, size_t *ret_len);

/** Sort the ranges, so that a lookup among many ranges is as fast as among few. Lookups also find
 *  ranges added later. The content is unchanged. Allocates if there are more ranges than before,
 *  and takes some 100 us for 1000 ranges. Stopped window: no. */
void attach_image_order(struct attach_image *image);

/** Reader of the image's ranges. A read may span adjacent ranges. */
const struct attach_reader *attach_image_reader(struct attach_image *image);

/**
 * Reader that reads the image first, then @p behind (may be NULL). With @p keep it adds to the
 * image what it read from @p behind, as far as there is room. Borrowed; one per image.
 */
const struct attach_reader *attach_image_reader_behind(struct attach_image *image,
						       const struct attach_reader *behind,
						       bool keep);

/**
 * Find the next range that was asked for and is missing or incomplete.
 * @param at 0 for the first call.
 * @return false after the last.
 */
bool attach_image_next_missing(const struct attach_image *image, size_t *at, uint64_t *ret_start,
			       uint64_t *ret_size);

/** Keep a named block of text or numbers with an image, such as the target's maps. */
int attach_image_set_note(struct attach_image *image, const char *name, const void *bytes,
			  size_t len, struct failure *why);
const void *attach_image_note(const struct attach_image *image, const char *name, size_t *ret_len);

/**
 * Write an image to a new file at @p path, which only its owner may read. Errors: FAILURE_SYSTEM.
 */
int attach_image_save(const struct attach_image *image, const char *path, struct failure *why);

/** Read an image from hostile bytes. FAILURE_INVALID has the byte offset in `address`. An image of
 *  another architecture is FAILURE_INVALID. */
int attach_image_load(const void *bytes, size_t len, struct attach_image **ret_image,
		      struct failure *why);
int attach_image_load_file(const char *path, struct attach_image **ret_image, struct failure *why);

/** Size that bounds every image, so that hostile or huge targets cost a bounded copy. */
#define ATTACH_IMAGE_MAX_BYTES ((size_t)16 << 20)

#endif
