/* SPDX-License-Identifier: MIT */
/* Which coroutines does a VM have, each with which stack? */
#ifndef LUASTATE_COROUTINES_H
#define LUASTATE_COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/stack.h"
#include "luastate/variables.h"

/** Position of a thread. It shows which coroutine runs on the thread's native stack. */
struct luastate_position {
	uint64_t sp;
	uint64_t stack_start, stack_end; /**< Mapping of its native stack. */
	bool is_in_call;		 /**< It is in a system call: its Lua code has called C. */
};

/** One coroutine. */
struct luastate_coroutine {
	uint64_t L;
	uint64_t vm_frame; /**< Its newest VM frame, 0 if it has none. */
	enum luastate_coroutine_status status;
	bool is_main;
	bool is_started; /**< If not, its only frame is the function that it will begin with, at the
			    line of its definition. */
	/** As for a VM's stack. Also TORN if a running coroutine's frames are in registers. */
	enum luastate_outcome outcome;
	const struct luastate_frame *frames; /**< Leaf first; borrowed until the visitor returns. */
	size_t frame_count;
};

/** How to enumerate coroutines. */
struct luastate_coroutines {
	const struct luastate_position *positions; /**< All known threads of the process. */
	size_t position_count;
	/** There are no other threads. If false, a coroutine with VM frames counts as running on
	 * an unknown thread's stack. */
	bool has_all_positions;
	uint64_t end_ns; /**< Deadline by CLOCK_MONOTONIC. */
	/** @return Whether to continue. */
	bool (*visit)(void *context, const struct luastate_coroutine *coroutine);
	void *context;
};

/**
 * Visit all coroutines of a VM along the list of all objects: newest first, the main one last. The
 * visit omits coroutines that the collector found unreachable but has not freed yet.
 *
 * For a copy or a core file. In a live process links may lead anywhere, which does no harm. Call
 * luastate_begin_sample() first; functions of frames are valid until the next call of it. Stopped
 * window: no.
 * @param memory      As for a walk; coroutines and stacks are read from `stopped`.
 * @param ret_objects Number of objects visited; always set.
 * @return 0; 1 if the list could not be followed to its end, or the time ran out; -1.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_NO_MEMORY.
 * Source: LuaJIT v2.1 src/lib_base.c (coroutine.status), src/lj_state.c, src/lj_gc.c (gc.root,
 * isdead), src/vm_x64.dasc (resume, yield).
 */
int luastate_each_coroutine(struct luastate *state, const struct luastate_memory *memory,
			    uint64_t G, const struct luastate_coroutines *how,
			    uint64_t *ret_objects, struct failure *why);

#endif
