/* SPDX-License-Identifier: MIT */
/* Which mappings does the text of a maps file list? */
#ifndef SYMBOLS_SPACE_MAPS_H
#define SYMBOLS_SPACE_MAPS_H

#include "symbols/space.h"

/** Longest maps text that we read: the kernel's default of 65530 mappings at 128 bytes each,
 *  doubled. */
#define SYMBOLS_MAPS_MAX_BYTES ((size_t)16 << 20)

/** Mappings to keep; a multiple of the kernel's default vm.max_map_count. */
#define SYMBOLS_MAPS_MAX_COUNT ((size_t)1 << 18)

/** Parsed maps. They own the text to which the list's paths point. */
struct symbols_maps {
	char *text; /**< As the kernel gave it. */
	size_t len;
	char *paths; /**< The same bytes, split into strings. */
	struct symbols_mapping *list;
	size_t count;
};

/**
 * Parse the text of a maps file.
 *
 * Lines must ascend and must not overlap, as the kernel writes them.
 * @param ret_maps Set on success; release with symbols_maps_deinit().
 * @param why      FAILURE_INVALID with the offset of the line in `address`, FAILURE_LIMIT,
 *                 FAILURE_NO_MEMORY.
 * Source: proc(5), Linux fs/proc/task_mmu.c, show_map_vma().
 */
int symbols_maps_init(const char *text, size_t len, struct symbols_maps *ret_maps,
		      struct failure *why);
void symbols_maps_deinit(struct symbols_maps *maps);

/**
 * Read a whole file of unknown size, such as one in /proc.
 * @param ret_text Set on success; free() it.
 * @param why As failure_set_errno(); FAILURE_LIMIT above SYMBOLS_MAPS_MAX_BYTES.
 */
int symbols_maps_read(const char *path, char **ret_text, size_t *ret_len, struct failure *why);

/** @return Index of the mapping that holds @p address, or -1. */
ptrdiff_t symbols_maps_find(const struct symbols_maps *maps, uint64_t address);

#endif
