/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_WALKERS_H
#define TESTS_FUZZ_WALKERS_H

/*
 * All that luastate does with a thread, over memory of any content. What it gives is checked as far
 * as it has to hold in any case; the program ends where it does not.
 */

#include "mutate.h"

/** A thread that is stopped, as the walk sees it. */
struct walkers_thread {
	const struct fake_vm *vm; /**< Where things are. */
	const struct attach_reader *memory;
	/** What a stop copied, and what was read after it; NULL: the memory itself, and none. */
	const struct attach_reader *stopped, *later;
	struct attach_registers regs;
	struct luastate_vm_frame vm_frames[SCENE_CFRAMES_MAX];
	size_t vm_frame_count;
};

/** @return The chain, until the next call. */
const struct luastate_chain *walkers_walk(struct luastate *state,
					  const struct walkers_thread *thread);
/** What the C frame search makes of the leaf and of each frame. */
void walkers_find_cframes(struct luastate *state, const struct walkers_thread *thread);
/** The planner's rounds. @param image,after Receive what a stop copies, and what is read after it.
 */
void walkers_plan(const struct luastate *state, struct luastate_prediction *prediction,
		  const struct walkers_thread *thread, struct attach_image *image,
		  struct attach_image *after);
/** Learn of a thread for a next plan. */
void walkers_learn(struct luastate *state, const struct walkers_thread *thread,
		   struct luastate_prediction *prediction);
/** What is said of the VM to people. */
void walkers_explain(struct luastate *state, const struct walkers_thread *thread);
/** Look for VMs in all ways. */
void walkers_search(struct luastate *state, const struct walkers_thread *thread);
/** All coroutines. */
void walkers_coroutines(struct luastate *state, const struct walkers_thread *thread);
/** Variables of the first and last few frames of a chain, with their values. */
void walkers_variables(struct luastate *state, const struct walkers_thread *thread,
		       const struct luastate_chain *chain);
/** What the compiler has made. */
void walkers_catalogue(struct luastate *state, const struct walkers_thread *thread);
/** VM stats, twice. */
void walkers_vitals(struct luastate *state, const struct walkers_thread *thread);
/** Names of functions, from the tables of modules. */
void walkers_names(struct luastate *state, const struct walkers_thread *thread);

/**
 * Memory of a thread that is changed, maybe also while it is read. A walker that reads more often
 * than it can need in a VM so small ends the program: it would not come to an end.
 */
struct walkers_memory {
	struct attach_reader reader;
	const struct attach_reader *target;
	struct mutation *mutation;
	struct choices *choices;   /**< Of a change while it is read. */
	uint64_t reads, reads_max; /**< Of the walker that runs. */
	uint64_t late_at;	   /**< The read before which the change is made, 0 none. */
};

void walkers_memory_init(struct walkers_memory *memory, struct mutation *mutation,
			 struct choices *choices);

/** What walkers_run() runs, in this order. */
enum walker {
	WALKER_PLAN,
	WALKER_CFRAMES,
	WALKER_WALK,
	WALKER_VARIABLES,
	WALKER_COROUTINES,
	WALKER_JIT_REPORT,
	WALKER_VM_STATS,
	WALKER_NAMES,
	WALKER_EXPLAIN,
	WALKER_SEARCH,
	WALKERS
};

extern const char *const walker_names[WALKERS];

/** What came of the walkers. */
struct walkers_count {
	uint64_t reads[WALKERS], most_reads[WALKERS];
	uint64_t chains, full, frames, longest;
};

/**
 * Change a thread's VM as decided, run walkers over it, and undo the changes. The VM was found when
 * it was whole. Decided is also whether it was walked then, and whether the walkers read what a
 * stop copies or all memory.
 * @param wanted Bits of enum walker; variables need the walk.
 * @param changes How many, at most MUTATE_MAX.
 */
void walkers_run(struct stage *stage, struct choices *choices, unsigned wanted, unsigned changes,
		 struct walkers_count *count);

/** walkers_run() for a fuzz target: the first three bytes choose the layout, one of @p situations,
 * and how many changes are made; the others are decisions. */
void walkers_fuzz(const uint8_t *data, size_t size, const unsigned *situations, size_t count,
		  unsigned wanted);

#endif
