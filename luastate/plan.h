/* SPDX-License-Identifier: MIT */
/* What does a stop, or a kernel sample, read? */
#ifndef LUASTATE_PLAN_H
#define LUASTATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/bpf.h"
#include "attach/thread.h"
#include "luastate/bpf/sampler_plan.h"
#include "luastate/luastate.h"

/** Coroutines whose stacks one stop copies: those that are nested in each other on one native
 * stack. */
#define LUASTATE_PREDICTED_THREADS 256

/** Frames that the planner expects to see again at the next stop. */
#define LUASTATE_PREDICTED_FRAMES 48

/** A possible frame on a Lua stack. */
struct luastate_plan_frame {
	const struct luastate_layout *layout;
	uint64_t function, link, proto; /**< proto: 0 if there is none. */
};

/** The running trace: the slot that refers to it, and its address. */
struct luastate_plan_trace {
	uint64_t G, slot, address;
	uint32_t number; /**< 0: none. */
};

/** What the planner remembers about a thread between stops; zero-initialise. */
struct luastate_prediction {
	unsigned epoch; /**< Changes with luastate_reset(), which makes earlier values invalid. */
	uint64_t native_end; /**< End of the highest frame of the last walks; 0 if unknown. */
	struct {
		uint64_t G, L, stack, used_end, limit;
	} threads[LUASTATE_PREDICTED_THREADS];
	unsigned thread_count;
	bool roams; /**< The thread was in more VMs than the samples before showed. */
	struct luastate_plan_frame frames[LUASTATE_PREDICTED_FRAMES];
	unsigned frame_count;
	struct luastate_plan_trace trace;
};

/** Distinct functions on the stacks that one stop reads. */
#define LUASTATE_PLAN_FRAMES 256

/** A coroutine that the planner met on the native stack. */
struct luastate_plan_thread {
	uint64_t L;
	const struct luastate_layout *layout;
	bool current; /**< It is its VM's current coroutine. */
};

struct state_proto;

/** The planner's progress in one stop. */
struct luastate_plan_progress {
	unsigned stage, thread_count, frame_count;
	unsigned expected; /**< The next predicted frame to meet. */
	struct luastate_plan_thread threads[LUASTATE_PREDICTED_THREADS];
	struct luastate_plan_frame frames[LUASTATE_PLAN_FRAMES];
	const struct state_proto *known[LUASTATE_PLAN_FRAMES]; /**< By frame; NULL: not known. */
	struct luastate_plan_trace trace;
	/** The newest VM frame, if it is outside the memory copied above the leaf's stack
	 * pointer; else 0. Usually the leaf is then a signal handler on a stack of its own. */
	uint64_t other_stack;
	uint16_t slots[2 * LUASTATE_PLAN_FRAMES]; /**< Frame + 1 by the hash of its function. */
};

/** Context of luastate_plan(). */
struct luastate_plan_context {
	const struct luastate *state;
	struct luastate_prediction *prediction;
	uint64_t stack_limit;			/**< End of the native stack, 0 if unknown. */
	struct luastate_plan_progress progress; /**< Private to the planner. */
};

/** The plan function of an attach_planner: requests the native stack, the global state, the
 * coroutines on the stack and their Lua stacks. Stopped window: yes; computes addresses only. */
bool luastate_plan(void *context, struct attach_image *image, unsigned round);

/**
 * Remember what the planner met, for the next stop. Request the memory that shows, after this stop,
 * whether known functions are unchanged. Stopped window: no.
 * @param image What the stop copied.
 * @param after Receives the requests. It is read before decoding, and has priority over the live
 * process.
 */
void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image,
			 struct attach_image *after);

/** Copies threads by a plan, with the rules of the BPF program. */
struct luastate_copier;

/**
 * Create a copier, for any number of threads in turn.
 * @param ret_copier The caller releases it with luastate_copier_destroy().
 * @param why FAILURE_NO_MEMORY. @return 0 or -1.
 */
int luastate_copier_create(struct luastate_copier **ret_copier, struct failure *why);
void luastate_copier_destroy(struct luastate_copier *copier);

/**
 * Copy a thread into the copier's own memory. Stopped window: yes. Ends after the plan's budget.
 * @param known Known prototypes: LUASTATE_BPF_KNOWN entries, see luastate_note_known().
 * @param fetcher Reads the thread's memory.
 */
void luastate_copier_run(struct luastate_copier *copier, const struct luastate_bpf_plan *plan,
			 const uint64_t *known, const struct attach_registers *registers,
			 struct attach_fetcher *fetcher);

/** Whether the last run ended because its time was over: the copy may lack something. */
bool luastate_copier_is_late(const struct luastate_copier *copier);

/** Add what the last run has copied to an image. @return false if the image lacks memory for it. */
bool luastate_copier_take(const struct luastate_copier *copier, struct attach_image *image);

/** The BPF program that copies threads, for attach_sampler_create(). */
struct attach_sampler_object luastate_bpf_object(void);

/** Largest range to request again if a copy lacked it. */
#define LUASTATE_BPF_EXTRA_MAX 4096

/**
 * Set what the kernel, or the stop of a recording, copies of a thread. Stopped window: no.
 * @param plan Set, except for its head, its salt and the ranges that copies lacked so far.
 */
void luastate_plan_bpf(const struct luastate_plan_context *context, struct luastate_bpf_plan *plan);

/**
 * Give the kernel the current plan. Writes only what changed, because the kernel may be reading it.
 * @param plan From attach_sampler_add().
 */
void luastate_renew_bpf(const struct luastate_plan_context *context,
			struct luastate_bpf_plan *plan);

/**
 * For a kernel sample, in place of luastate_plan(): note what the image shows, for
 * luastate_plan_after() and for decoding, and request what it lacks for the next copies.
 * @return whether it lacked something for the first time in a while.
 */
bool luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
			  struct luastate_bpf_plan *plan);

struct luastate_chain;

/**
 * After decoding, give the kernel the prototypes of the copy that are now known.
 * @param chain The decoded sample. @param table From attach_sampler_known().
 */
void luastate_note_known(const struct luastate_plan_context *context,
			 const struct luastate_chain *chain, uint64_t salt, uint64_t *table);

#endif
