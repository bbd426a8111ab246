/* SPDX-License-Identifier: MIT */
/* Which blocks of memory are allocated, and by whom? */
#ifndef FORMAT_MEMPROF_ALLOCATION_MAP_H
#define FORMAT_MEMPROF_ALLOCATION_MAP_H

#include "attach/failure.h"

/** A block of memory that is allocated. */
struct block {
	uint64_t size;
	uint32_t place; /**< Who allocated it: an id of the caller's. */
};

/** Slots of the table, of which 7/8 are used at most: 14 million blocks, which 320 MiB hold. Keeps
 *  hostile files from filling the memory. */
#define BLOCKS_SLOTS_MAX (1u << 24)

/**
 * Blocks by their address. All zero is none.
 *
 * A hash table with open addresses whose function nobody outside knows, as addresses come from
 * files. Its slots are in arrays of their own, so that none has padding.
 */
struct blocks {
	uint64_t *addresses, *sizes;
	uint32_t *places; /* Id + 1; 0: the slot is free. */
	uint32_t slots, count;
	uint32_t slots_max; /* 0: BLOCKS_SLOTS_MAX. */
	uint64_t key[2];    /* Odd. */
};

void blocks_deinit(struct blocks *blocks);

/** Add a block, in place of one at the same address. @param why FAILURE_NO_MEMORY, or FAILURE_LIMIT
 * where there are more than are kept. */
int blocks_put(struct blocks *blocks, uint64_t address, struct block block, struct failure *why);

/** Take the block at an address out. @return Whether there is one. */
bool blocks_take(struct blocks *blocks, uint64_t address, struct block *ret_block);

/** Walk all, in any order. @param slot 0 at first. @return false behind the last. */
bool blocks_next(const struct blocks *blocks, uint32_t *slot, struct block *ret_block);

#endif
