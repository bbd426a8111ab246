/* SPDX-License-Identifier: MIT */
/* Which blocks of memory are allocated, and at which location? */
#ifndef FORMAT_MEMPROF_ALLOCATION_MAP_H
#define FORMAT_MEMPROF_ALLOCATION_MAP_H

#include "attach/failure.h"

/** An allocated block of memory. */
struct allocation {
	uint64_t size;
	uint32_t location; /**< Id of the location that allocated it; the caller's number. */
};

/** Slots of the table. At most 7/8 are used: 14 million blocks in 320 MiB. Keeps hostile files
 * from filling the memory. */
#define ALLOCATION_SLOTS_MAX (1u << 24)

/**
 * Allocated blocks by address. All zero is an empty table.
 *
 * A hash table with open addressing. It is our own, because each event of a memory profile looks a
 * block up, and there are millions: with two million blocks, uthash took 2.3 times as long and 3.4
 * times the memory. Addresses, sizes and locations have an array each, which avoids padding.
 */
struct allocations {
	uint64_t *addresses, *sizes;
	uint32_t *locations; /* Id + 1; 0: the slot is free. */
	uint32_t slots, count;
	uint32_t slots_max; /* 0: ALLOCATION_SLOTS_MAX. */
};

void allocation_map_deinit(struct allocations *allocations);

/**
 * Add a block; it replaces one at the same address.
 * @param why FAILURE_NO_MEMORY, or FAILURE_LIMIT if the table is full.
 */
int allocation_map_put(struct allocations *allocations, uint64_t address,
		       struct allocation allocation, struct failure *why);

/** Remove the block at an address. @return Whether there was one. */
bool allocation_map_take(struct allocations *allocations, uint64_t address,
			 struct allocation *ret_block);

/**
 * Get the next block, in no special order.
 * @param slot 0 at first.
 * @return false after the last block.
 */
bool allocation_map_next(const struct allocations *allocations, uint32_t *slot,
			 struct allocation *ret_block);

#endif
