/* SPDX-License-Identifier: MIT */
/* Arrays that grow, and the search in sorted ones. */
#ifndef ATTACH_ARRAY_H
#define ATTACH_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the first allocation, at least. */
#define ARRAY_FIRST_BYTES 512

/** For ARRAY_RESERVE(). @param max Items at most. @return NULL without memory: nothing changed. */
static inline void *array_grow(void *items, size_t item_bytes, size_t wanted, size_t max,
			       size_t *room)
{
	size_t larger = *room ? 2 * *room : ARRAY_FIRST_BYTES / item_bytes + 1;
	void *grown;

	if (larger < wanted || larger > max)
		larger = wanted;
	grown = larger <= max ? reallocarray(items, larger, item_bytes) : NULL;
	if (grown)
		*room = larger;
	return grown;
}

/** The same, and what is new is zero. */
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
 * Have room for @p wanted items.
 * @param items Of malloc(), or NULL; moved.
 * @param room  Items that fit, of an unsigned type; 0 at first. At least doubled.
 * @return Whether there is; without memory nothing changed. Names its parameters several times.
 */
#define ARRAY_RESERVE(items, room, wanted) ARRAY_RESERVE_BY(array_grow, items, room, wanted)

/** The same, and what is new is zero. */
#define ARRAY_RESERVE_ZEROED(items, room, wanted) \
	ARRAY_RESERVE_BY(array_grow_zeroed, items, room, wanted)

/**
 * How many items of a sorted array are before something.
 * @param at	    A name for an index, in the next.
 * @param is_before Whether the item at that index is; where one is not, those behind it are not.
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

/** For qsort(): by the uint64_t that items begin with. */
static inline int array_by_first_u64(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

#endif
