/* SPDX-License-Identifier: MIT */
/* Which blocks of memory are allocated, and by whom? */
#ifndef FORMAT_MEMPROF_ALLOCATION_MAP_H
#define FORMAT_MEMPROF_ALLOCATION_MAP_H

#include "attach/failure.h"

/** A block of memory that is allocated. */
struct allocation {
	uint64_t size;
	uint32_t location; /**< Who allocated it: an id of the caller's. */
};

/** Slots of the table, of which 7/8 are used at most: 14 million blocks, which 320 MiB hold. Keeps
 *  hostile files from filling the memory. */
#define ALLOCATION_SLOTS_MAX (1u << 24)

/**
 * Blocks by their address. All zero is none.
 *
 * A hash table with open addresses. It is ours, as each event of a memory profile looks a block up,
 * and there are millions: with two million of them uthash took 2.3 times as long and 3.4 times the
 * memory. Its slots are in arrays of their own, so that none has padding.
 */
struct allocations {
	uint64_t *addresses, *sizes;
	uint32_t *locations; /* Id + 1; 0: the slot is free. */
	uint32_t slots, count;
	uint32_t slots_max; /* 0: ALLOCATION_SLOTS_MAX. */
};

void allocation_map_deinit(struct allocations *allocations);

/** Add a block, in place of one at the same address. @param why FAILURE_NO_MEMORY, or FAILURE_LIMIT
 * where there are more than are kept. */
int allocation_map_put(struct allocations *allocations, uint64_t address,
		       struct allocation allocation, struct failure *why);

/** Take the block at an address out. @return Whether there is one. */
bool allocation_map_take(struct allocations *allocations, uint64_t address,
			 struct allocation *ret_block);

/** Walk all, in any order. @param slot 0 at first. @return false behind the last. */
bool allocation_map_next(const struct allocations *allocations, uint32_t *slot,
			 struct allocation *ret_block);

#endif
