/* SPDX-License-Identifier: MIT */
/* What do we derive from one mapped ELF file, or from the vDSO? */
#ifndef SYMBOLS_SPACE_OBJECT_H
#define SYMBOLS_SPACE_OBJECT_H

#include "attach/hash.h"
#include "symbols/names/plt.h"
#include "symbols/names/symtab.h"
#include "symbols/unwind.h"

/** Identity of the object that a mapping shows; no padding. */
struct symbols_object_key {
	uint64_t inode, vdso_start; /**< vdso_start is 0 for a file. */
	uint32_t dev_major, dev_minor;
};

struct symbols_object {
	struct symbols_object_key key;
	UT_hash_handle hh; /**< In the hash table of its space, by key. */
	struct symbols_elf elf;
	char *path;		    /**< Path in the target. */
	struct symbols_eh eh;	    /**< See symbols_object_eh(). */
	struct symbols_names names; /**< See symbols_object_names(). */
	struct symbols_plt plt;
	bool eh_tried, names_tried;
	uint64_t eh_used; /**< See symbols_space_eh(). */
	/** Link-time addresses; see symbols_each_unwind_entry(). */
	struct symbols_unwind_entry *framed;
	size_t framed_count;
	uint64_t framed_min_len;
	bool framed_searched;
	unsigned unmapped; /**< Number of refreshes since it was last mapped. */
};

/** What opening an object needs. */
struct symbols_opener {
	const struct symbols_root *root;
	const struct attach_reader *memory; /**< The target's memory; may be NULL. */
	bool headers_prove;		    /**< See symbols_object_create(). */
};

/**
 * Open the file behind a mapping, or copy the vDSO.
 *
 * We use a file that we find by its path if its device and inode are the mapping's. Overlay and
 * btrfs show other numbers in stat() than in maps. The file's build-id must then be the one in
 * memory. For a file without a build-id and with `headers_prove`, it is enough that its first page
 * is the one in memory.
 * @param why FAILURE_NOT_FOUND, FAILURE_INVALID, FAILURE_NO_MEMORY, or the memory reader's.
 */
int symbols_object_create(const struct symbols_mapping *mapping,
			  const struct symbols_opener *opener, struct symbols_object **ret_object,
			  struct failure *why);
void symbols_object_destroy(struct symbols_object *object);

/**
 * Get the key of the object that @p mapping shows.
 * @return false if the mapping shows neither a file nor the vDSO.
 */
bool symbols_object_key(const struct symbols_mapping *mapping, struct symbols_object_key *ret_key);

/**
 * Distance from link-time to target addresses.
 * @return false if the mapping shows no loaded part of the file.
 */
bool symbols_object_bias(const struct symbols_elf *elf, const struct symbols_mapping *mapping,
			 uint64_t *ret_bias);

/** Add the build-id or the whole vDSO to an image. */
int symbols_object_add_evidence(const struct symbols_object *object, uint64_t bias,
				struct attach_image *image, struct failure *why);

/**
 * Get the unwind entries, and load them on first use. After a shortage of our own the next call
 * tries again.
 * @param ret_why Always set.
 * @return Borrowed; NULL if there are none.
 */
const struct symbols_eh *symbols_object_eh(struct symbols_object *object, struct failure *ret_why);
/** Bytes of the loaded unwind entries. */
size_t symbols_object_eh_size(const struct symbols_object *object);
void symbols_object_drop_eh(struct symbols_object *object);

/**
 * Names, loaded on first use.
 * @return NULL when out of memory.
 */
const struct symbols_names *symbols_object_names(struct symbols_object *object,
						 const struct symbols_root *root);
void symbols_object_drop_names(struct symbols_object *object);

#endif
