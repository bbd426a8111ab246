/* SPDX-License-Identifier: MIT */
/*
 * What do we know about the LuaJIT in one process?
 *
 * Only this module knows LuaJIT's private structures, as rows of layouts.table. All reads go
 * through attach's remote reader. Everything read is checked before it is followed.
 */
#ifndef LUASTATE_LUASTATE_H
#define LUASTATE_LUASTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/image.h"

/** Offsets and constants of a range of builds; private. */
struct luastate_layout;

/** The VMs of one target process and what we know about their functions. */
struct luastate;

/** @return NULL when out of memory. */
struct luastate *luastate_create(void);
void luastate_destroy(struct luastate *state);

/** Forget interpreters, VMs and caches, because the process runs another program now. */
void luastate_reset(struct luastate *state);

/**
 * Memory that decoding reads. Stacks, coroutines and the VM's state change as soon as the thread
 * runs again, so decoding reads them only from what the stop copied. Functions, prototypes and
 * names live longer; if the stop did not copy them, they may come from the live process.
 */
struct luastate_memory {
	const struct attach_reader *stopped;
	const struct attach_reader *any;
	/** Only what was read after the stop, without what the stop copied. Shows what changed
	 * since the stop. NULL if there is no such memory. */
	const struct attach_reader *later;
	/** The process as it is now, for a copy that cannot be asked for what it lacks; else
	 * NULL. Data read here counts only if the object around it is unchanged after the read. */
	const struct attach_reader *live;
	/** Everything read through `any` becomes part of an image that is decoded again. Decoding
	 * therefore reads nothing more, and names functions only by what is on the stack. */
	bool is_kept;
};

/** Begin a new sample: check functions against the target's memory again. */
void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader);

/** Read functions and names again in every sample instead of trusting caches. An image that keeps
 * all reads is then complete. */
void luastate_set_thorough(struct luastate *state, bool thorough);

/**
 * Reports which pages of [start, end) are in memory. Both are multiples of ATTACH_PAGE_BYTES.
 * @param ret_there One byte for each page, 0 on entry; set the bytes of the pages in memory.
 * @return false if that is unknown.
 */
typedef bool luastate_pages_function(void *context, uint64_t start, uint64_t end,
				     uint8_t *ret_there);

/**
 * Set the function that reports which pages of a live process are in memory. The search for names
 * walks a heap; it skips pages that are not in memory, because reading them would swap them in.
 * @param pages NULL: no function. @param context Borrowed.
 */
void luastate_set_pages(struct luastate *state, luastate_pages_function *pages, void *context);

#endif
