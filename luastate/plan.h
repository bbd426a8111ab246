/* SPDX-License-Identifier: MIT */
/* What does a stop, or a copy by the kernel, read? */
#ifndef LUASTATE_PLAN_H
#define LUASTATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/bpf.h"
#include "luastate/bpf/sampler_plan.h"
#include "luastate/luastate.h"

/** Coroutines whose stacks one stop copies: those nested in each other on one native stack. */
#define LUASTATE_PREDICTED_THREADS 256

/** Frames that the planner expects again in the next stop. */
#define LUASTATE_PREDICTED_FRAMES 48

/** What can be a frame on a Lua stack. */
struct luastate_plan_frame {
	const struct luastate_layout *layout;
	uint64_t function, link, proto; /**< proto: 0 if there is none. */
};

/** The trace that ran, where its table refers to it, and where it is. */
struct luastate_plan_trace {
	uint64_t G, slot, address;
	uint32_t number; /**< 0: none. */
};

/** What the planner remembers of a thread from stop to stop; zero-initialise. */
struct luastate_prediction {
	unsigned epoch;	     /**< What came before luastate_reset() says nothing of what is now. */
	uint64_t native_end; /**< Behind the highest native frame of the last walks; 0 unknown. */
	struct {
		uint64_t G, L, stack, used_end, limit;
	} threads[LUASTATE_PREDICTED_THREADS];
	unsigned thread_count;
	bool roams; /**< The thread has been in more VMs than the samples before showed. */
	struct luastate_plan_frame frames[LUASTATE_PREDICTED_FRAMES];
	unsigned frame_count;
	struct luastate_plan_trace trace;
};

/** Different functions on the stacks that one stop reads. */
#define LUASTATE_PLAN_FRAMES 256

/** A coroutine that the planner met on the native stack. */
struct luastate_plan_thread {
	uint64_t L;
	const struct luastate_layout *layout;
	bool current; /**< Of its VM. */
};

struct state_proto;

/** How far the planner is in one stop. */
struct luastate_plan_progress {
	unsigned stage, thread_count, frame_count;
	unsigned expected; /**< The next of the predicted frames, those before it were met. */
	struct luastate_plan_thread threads[LUASTATE_PREDICTED_THREADS];
	struct luastate_plan_frame frames[LUASTATE_PLAN_FRAMES];
	const struct state_proto *known[LUASTATE_PLAN_FRAMES]; /**< By frame; NULL: not known. */
	struct luastate_plan_trace trace;
	/** The newest C frame, where it is not in what is copied above the leaf's stack pointer:
	 * mostly as the leaf is a signal handler's on a stack of its own; else 0. */
	uint64_t other_stack;
	uint16_t slots[2 * LUASTATE_PLAN_FRAMES]; /**< Frame + 1 by the hash of its function. */
};

/** Context of luastate_plan(). */
struct luastate_plan_context {
	const struct luastate *state;
	struct luastate_prediction *prediction;
	uint64_t stack_limit; /**< First address behind the native stack, 0 unknown. */
	struct luastate_plan_progress progress; /**< The planner's own. */
};

/** An attach_planner's plan function: asks for the native stack, the global state, the coroutines
 *  on the stack and their Lua stacks. Stopped window: yes; computes addresses only. */
bool luastate_plan(void *context, struct attach_image *image, unsigned round);

/**
 * Remember what the planner met, for the next stop, and ask for what shows after this one that
 * known functions are what they were. Stopped window: no.
 * @param image What the stop copied.
 * @param after Receives the wishes; read before decoding, and in front of the live process.
 */
void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image,
			 struct attach_image *after);

/** The program by which the kernel copies threads, for attach_sampler_create(). */
struct attach_sampler_object luastate_bpf_object(void);

/** Of what a copy lacked, larger ranges than this are not asked for again. */
#define LUASTATE_BPF_EXTRA_MAX 4096

/**
 * Say what the kernel is to copy of a thread, in place of what a planner asks for in a stop.
 * Stopped window: no, nothing is stopped.
 * @param plan Set, but for its head, its salt and what copies lacked so far.
 */
void luastate_plan_bpf(const struct luastate_plan_context *context, struct luastate_bpf_plan *plan);

/** Tell the kernel what to copy from now on. Writes only what has changed, as the kernel may be
 *  reading it. @param plan What attach_sampler_add() gave. */
void luastate_renew_bpf(const struct luastate_plan_context *context,
			struct luastate_bpf_plan *plan);

/**
 * In place of luastate_plan() where the image was copied by the kernel: note what it shows, as
 * luastate_plan_after() and decoding need it, and have the copies to come hold what it lacks.
 * @return whether it lacked something for the first time in a while.
 */
bool luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
			  struct luastate_bpf_plan *plan);

struct luastate_chain;

/** After decoding: tell the kernel which prototypes of the copy are known by now. @param chain What
 * was decoded. @param table What attach_sampler_known() gave. */
void luastate_note_known(const struct luastate_plan_context *context,
			 const struct luastate_chain *chain, uint64_t salt, uint64_t *table);

#endif
