/* SPDX-License-Identifier: MIT */
/* One mapped ELF file, or the vDSO, with what was derived from it. */
#ifndef SYMBOLS_SPACE_OBJECT_H
#define SYMBOLS_SPACE_OBJECT_H

#include "attach/hash.h"
#include "symbols/names/plt.h"
#include "symbols/names/symtab.h"
#include "symbols/unwind.h"

/** What a mapping says of the object that it shows; no padding. */
struct symbols_object_key {
	uint64_t inode, vdso_start; /**< vdso_start is 0 for a file. */
	uint32_t dev_major, dev_minor;
};

struct symbols_object {
	struct symbols_object_key key;
	UT_hash_handle hh; /**< In its space, by key. */
	struct symbols_elf elf;
	char *path;		    /**< In the target. */
	struct symbols_eh eh;	    /**< See symbols_object_eh(). */
	struct symbols_names names; /**< See symbols_object_names(). */
	struct symbols_plt plt;
	bool eh_tried, names_tried;
	uint64_t eh_used; /**< See symbols_space_eh(). */
	/** See symbols_each_unwind_entry(): link-time addresses. */
	struct symbols_unwind_entry *framed;
	size_t framed_count;
	uint64_t framed_min_len;
	bool framed_looked;
	unsigned unmapped; /**< Refreshes since it was last mapped. */
};

/** What objects are opened with. */
struct symbols_opener {
	const struct symbols_root *root;
	const struct attach_reader *memory; /**< Of the target; NULL without. */
	bool headers_prove;		    /**< See symbols_object_create(). */
};

/**
 * Open the file behind a mapping, or copy the vDSO.
 *
 * A file found by its path is taken if its device and inode are the mapping's. Overlay and btrfs
 * show other numbers in stat() than in maps: then its build-id must be the one in memory. Of a file
 * without a build-id the headers are enough where `headers_prove`: its first page as in memory.
 * @param why FAILURE_NOT_FOUND, FAILURE_INVALID, FAILURE_NO_MEMORY, or of the memory reader.
 */
int symbols_object_create(const struct symbols_mapping *mapping,
			  const struct symbols_opener *opener, struct symbols_object **ret_object,
			  struct failure *why);
void symbols_object_destroy(struct symbols_object *object);

/** The key of the object that @p mapping shows, as far as its numbers tell. @return false if it
 * shows neither a file nor the vDSO. */
bool symbols_object_key(const struct symbols_mapping *mapping, struct symbols_object_key *ret_key);

/**
 * Distance from link-time to target addresses.
 * @return false where the mapping is of no loaded part of the file.
 */
bool symbols_object_bias(const struct symbols_elf *elf, const struct symbols_mapping *mapping,
			 uint64_t *ret_bias);

/** Add the build-id, or the whole vDSO, to an image. */
int symbols_object_add_evidence(const struct symbols_object *object, uint64_t bias,
				struct attach_image *image, struct failure *why);

/** Unwind entries, loaded on first use; NULL if there are none. */
/** @param ret_why Set in any case; a shortage does not count as having tried. */
const struct symbols_eh *symbols_object_eh(struct symbols_object *object, struct failure *ret_why);
/** Bytes that the unwind entries take, as far as they are loaded. */
size_t symbols_object_eh_size(const struct symbols_object *object);
void symbols_object_drop_eh(struct symbols_object *object);

/** Names, loaded on first use. @return NULL without memory. */
const struct symbols_names *symbols_object_names(struct symbols_object *object,
						 const struct symbols_root *root);
void symbols_object_drop_names(struct symbols_object *object);

#endif
