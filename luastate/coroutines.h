/* SPDX-License-Identifier: MIT */
/* Which coroutines does a VM have, each with which stack? */
#ifndef LUASTATE_COROUTINES_H
#define LUASTATE_COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/stack.h"
#include "luastate/variables.h"

/** Where a thread is: what runs is on a thread's native stack. */
struct luastate_position {
	uint64_t sp;
	uint64_t stack_start, stack_end; /**< Mapping of its native stack. */
	bool is_in_call;		 /**< In a system call: Lua code on it has called C. */
};

/** One coroutine. */
struct luastate_coroutine {
	uint64_t L;
	uint64_t vm_frame; /**< Its newest C frame, 0 for none. */
	enum luastate_coroutine_status status;
	bool is_main;
	bool is_started; /**< Else its only frame is the function that it will begin with, with the
			      line where that is defined. */
	/** Of a VM's stack: TORN also where a running one's frames are in registers. */
	enum luastate_outcome outcome;
	const struct luastate_frame *frames; /**< Leaf first; borrowed until the visitor returns. */
	size_t frame_count;
};

/** How to enumerate coroutines. */
struct luastate_coroutines {
	const struct luastate_position *positions; /**< Of the process's threads. */
	size_t position_count;
	/** There are no other threads. Else who has C frames is taken to be on a thread's stack. */
	bool has_all_positions;
	uint64_t end_ns; /**< By CLOCK_MONOTONIC. */
	/** @return Whether to go on. */
	bool (*visit)(void *context, const struct luastate_coroutine *coroutine);
	void *context;
};

/**
 * Visit all coroutines of a VM, newest first, the main one last, along the list of all objects.
 * What the collector has found to be unreachable, and has not freed yet, is left out.
 *
 * For a copy or a core file; over a live process links lead anywhere, which does no harm. Functions
 * of frames are valid until luastate_begin_sample(), to be called before. Stopped window: no.
 * @param memory      As for a walk; `stopped` is where coroutines and stacks are read.
 * @param ret_objects Objects that were looked at; set in any case.
 * @return 1 where the list could not be followed to its end, or time was over; 0; -1.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_NO_MEMORY.
 * Source: LuaJIT v2.1 src/lib_base.c (coroutine.status), src/lj_state.c, src/lj_gc.c (gc.root,
 * isdead), src/vm_x64.dasc (resume, yield).
 */
int luastate_each_coroutine(struct luastate *state, const struct luastate_memory *memory,
			    uint64_t G, const struct luastate_coroutines *how,
			    uint64_t *ret_objects, struct failure *why);

#endif
