/* SPDX-License-Identifier: MIT */
/*
 * What is known of the LuaJIT in one process?
 *
 * LuaJIT's private structures are known in this module alone, as rows of layouts.table. All reads
 * go through attach's remote reader; everything read is checked before it is followed.
 */
#ifndef LUASTATE_LUASTATE_H
#define LUASTATE_LUASTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/image.h"

/** Offsets and constants of a range of builds; private. */
struct luastate_layout;

/** The VMs of one target process and what is known about their functions. */
struct luastate;

/** @return NULL when out of memory. */
struct luastate *luastate_create(void);
void luastate_destroy(struct luastate *state);

/** Forget interpreters, VMs and caches: another program runs now. */
void luastate_reset(struct luastate *state);

/**
 * Where decoding reads. Stacks, coroutines and the VM's state change at once when the thread runs
 * on, so they are read in what the stop copied, and nowhere else. Functions, prototypes and names
 * live longer; what the stop did not copy of them may come from the live process.
 */
struct luastate_memory {
	const struct attach_reader *stopped;
	const struct attach_reader *any;
	/** What was read behind the stop, and nothing of what the stop copied: shows what has
	 * changed since. NULL where there is no such memory. */
	const struct attach_reader *later;
	/** Where the copy could not be asked for what it lacked: the process as it is now. What is
	 * read there is believed if what it is a part of is the same still after that. Else NULL.
	 */
	const struct attach_reader *live;
	/** What is read through `any` becomes a part of the image, which is decoded again: so
	 * nothing else is read, and names are those alone that what is on the stack tells. */
	bool is_kept;
};

/** Say that a new sample is decoded: functions are checked anew against the target's memory. */
void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader);

/** Read functions and names anew in every sample instead of trusting caches, so that an image that
 *  keeps all reads is whole. */
void luastate_set_thorough(struct luastate *state, bool thorough);

/**
 * Tells which pages of [start, end) are in memory. Both are multiples of ATTACH_PAGE_BYTES.
 * @param ret_there One byte for each page, 0 on entry: set those that are.
 * @return false where that is not known.
 */
typedef bool luastate_pages_function(void *context, uint64_t start, uint64_t end,
				     uint8_t *ret_there);

/** Whom to ask for that of a live process. What is not in memory is then left alone where names are
 *  looked for, for which a heap is gone through: else that would bring in what was swapped out.
 *  @param pages NULL: nobody. @param context Borrowed. */
void luastate_set_pages(struct luastate *state, luastate_pages_function *pages, void *context);

#endif
