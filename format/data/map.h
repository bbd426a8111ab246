/* SPDX-License-Identifier: MIT */
/* A map of numbers that finds the nearest key, too. */
#ifndef FORMAT_DATA_MAP_H
#define FORMAT_DATA_MAP_H

#include "attach/failure.h"

/**
 * Sorted map from a 64-bit key to a 64-bit value, with search for the nearest key at or below.
 * Keys lie in sorted chunks of bounded size, so that inserting in any order stays cheap also with
 * a million of them. All zero is an empty map.
 */
struct format_addrmap {
	struct format_addrmap_chunk **chunks;
	size_t count, capacity;
};

void format_addrmap_deinit(struct format_addrmap *map);

/** Set or replace the value of @p key. @return 0, or -1 with FAILURE_NO_MEMORY. */
int format_addrmap_set(struct format_addrmap *map, uint64_t key, uint64_t value,
		       struct failure *why);

bool format_addrmap_get(const struct format_addrmap *map, uint64_t key, uint64_t *ret_value);

/** The entry with the largest key that is not above @p key. */
bool format_addrmap_floor(const struct format_addrmap *map, uint64_t key, uint64_t *ret_key,
			  uint64_t *ret_value);

#endif
