/* SPDX-License-Identifier: MIT */
/* Which value has a number, or the nearest one below it? */
#ifndef FORMAT_DATA_MAP_H
#define FORMAT_DATA_MAP_H

#include "attach/failure.h"

/** Sorted map from a 64-bit key to a 64-bit value, with search for the nearest key at or below.
 * Keys are in sorted chunks of bounded size, so inserting in any order is fast even with a
 * million keys. All zero is an empty map. */
struct format_addrmap {
	struct format_addrmap_chunk **chunks;
	size_t count, capacity;
};

void format_addrmap_deinit(struct format_addrmap *map);

/** Set or replace the value of @p key. @return 0, or -1 with FAILURE_NO_MEMORY. */
int format_addrmap_set(struct format_addrmap *map, uint64_t key, uint64_t value,
		       struct failure *why);

bool format_addrmap_get(const struct format_addrmap *map, uint64_t key, uint64_t *ret_value);

/** Find the entry with the largest key that is not above @p key. */
bool format_addrmap_floor(const struct format_addrmap *map, uint64_t key, uint64_t *ret_key,
			  uint64_t *ret_value);

#endif
