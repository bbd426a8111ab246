/* SPDX-License-Identifier: MIT */
/* How do arrays grow, and how do we search sorted ones? */
#ifndef ATTACH_ARRAY_H
#define ATTACH_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Minimum bytes of the first allocation. */
#define ARRAY_FIRST_BYTES 512

/**
 * Grow an array for ARRAY_RESERVE().
 * @param max Items at most.
 * @return NULL when out of memory; the array is then unchanged.
 */
static inline void *array_grow(void *items, size_t item_bytes, size_t wanted, size_t max,
			       size_t *room)
{
	size_t larger = *room ? 2 * *room : ARRAY_FIRST_BYTES / item_bytes + 1;
	void *grown;

	if (larger < wanted || larger > max)
		larger = wanted;
	grown = larger <= max && larger <= PTRDIFF_MAX / item_bytes
			? realloc(items, larger * item_bytes)
			: NULL;
	if (grown)
		*room = larger;
	return grown;
}

/** array_grow(), with zeros in the new items. */
static inline void *array_grow_zeroed(void *items, size_t item_bytes, size_t wanted, size_t max,
				      size_t *room)
{
	size_t had = *room;
	char *grown = array_grow(items, item_bytes, wanted, max, room);

	if (grown)
		memset(grown + had * item_bytes, 0, (*room - had) * item_bytes);
	return grown;
}

#define ARRAY_RESERVE_BY(grow, items, room, wanted)                                    \
	((size_t)(wanted) <= (size_t)(room) || __extension__({                         \
		 size_t array_room = (size_t)(room);                                   \
		 void *array_items = grow((items), sizeof(*(items)), (size_t)(wanted), \
					  (size_t)(__typeof__(room))-1, &array_room);  \
                                                                                       \
		 if (array_items) {                                                    \
			 (items) = array_items;                                        \
			 (room) = (__typeof__(room))array_room;                        \
		 }                                                                     \
		 array_items != NULL;                                                  \
	 }))

/**
 * Make room for @p wanted items.
 * @param items From malloc(), or NULL; may move.
 * @param room Items that fit, of an unsigned type; 0 at first. At least doubles.
 * @return Whether there is room; without memory nothing changes. The macro evaluates its arguments
 *         several times.
 */
#define ARRAY_RESERVE(items, room, wanted) ARRAY_RESERVE_BY(array_grow, items, room, wanted)

/** ARRAY_RESERVE(), with zeros in the new items. */
#define ARRAY_RESERVE_ZEROED(items, room, wanted) \
	ARRAY_RESERVE_BY(array_grow_zeroed, items, room, wanted)

/**
 * Count the items of a sorted array that are before a position.
 * @param at Name of an index, for use in @p is_before.
 * @param is_before Whether the item at this index is before the position. If it is not, no later
 *        item is.
 */
#define ARRAY_SEARCH(count, at, is_before)                                    \
	__extension__({                                                       \
		size_t array_low = 0, array_high = (count);                   \
                                                                              \
		while (array_low < array_high) {                              \
			size_t at = array_low + (array_high - array_low) / 2; \
                                                                              \
			if (is_before)                                        \
				array_low = at + 1;                           \
			else                                                  \
				array_high = at;                              \
		}                                                             \
		array_low;                                                    \
	})

/** Compare for qsort() by the uint64_t at the start of each item. */
static inline int array_by_first_u64(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

#endif
