/* SPDX-License-Identifier: MIT */
/* Private to luastate: which frames are on one Lua stack? */
#ifndef LUASTATE_STACK_WALK_H
#define LUASTATE_STACK_WALK_H

#include "luastate/stack.h"
#include "luastate/state/state.h"

/** One coroutine's Lua stack, according to its lua_State. Addresses of slots. */
struct walk_stack {
	struct state_view view;
	uint64_t L;
	uint64_t bottom;      /* lowest base: nothing below it is a frame */
	uint64_t limit;	      /* no base is above it */
	uint64_t base;	      /* L->base */
	uint64_t vm_frame;    /* its newest VM frame, 0 if none */
	uint64_t frame_bytes; /* size of a frame's function and link below its base */
};

/** A function found in a frame's function slot. */
struct walk_function {
	enum luastate_kind kind;
	struct state_proto *proto; /* Lua */
	uint64_t object;	   /* GCfunc */
	uint64_t f, pc;		   /* C: entry; built-in: address of its bytecode */
	int ffid;
	bool dummy; /* the slot holds a coroutine: bottom frame, no function */
};

/** Location of a stack's topmost frame, and its function's position. */
struct walk_top {
	uint64_t base;
	uint64_t pc; /* address of the current instruction, 0 if unknown */
};

enum {
	/* Maximum steps of all walks of one sample. No chain is longer than LUASTATE_FRAMES_MAX,
	 * and a few candidates are walked without a result. */
	WALK_STEPS = 3 * LUASTATE_FRAMES_MAX,
};

/** State of one sample's walk. */
struct walk {
	struct luastate *state;
	const struct luastate_memory *memory;	   /* contains the next two members */
	const struct attach_reader *stopped;	   /* stacks, coroutines, the VM's state */
	const struct attach_reader *reader;	   /* everything else */
	const struct luastate_vm_frame *vm_frames; /* newest first */
	size_t vm_frame_count;
	const struct luastate_vm *vm; /* VM of the newest VM frame; NULL: unknown */
	struct luastate_chain *chain;
	int vmstate; /* of the newest VM frame's VM; -1: unknown */
	unsigned steps_left;
	unsigned losses; /* state->losses before this sample */
};

int walk_read_stack(struct walk *walk, uint64_t L, struct walk_stack *ret_stack,
		    struct failure *why);

/** Read the function of a possible frame at @p base. */
int walk_read_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		       struct walk_function *ret_function, struct failure *why);

/**
 * Read the function of the frame at @p base. If it was in its slot during the stop and is
 * unreadable now, it was collected since then. That is a loss, which makes the sample inconsistent
 * (state->losses).
 */
int walk_expect_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
			 struct walk_function *ret_function, struct failure *why);

bool walk_is_base(const struct walk_stack *stack, uint64_t base);

/** Read the link of the frame at @p base. */
int walk_read_link(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		   uint64_t *ret_link, struct failure *why);

/** Base of the frame that called the one at @p base with the instruction @p call. */
uint64_t walk_caller_base(const struct walk_stack *stack, uint64_t base, uint32_t call);

/**
 * Append a frame to the chain.
 * @param location Only for a Lua function: base 0 if it has no slots, pc 0 if it has no position
 * yet.
 * @param why FAILURE_NO_MEMORY; FAILURE_LIMIT if the chain is full.
 */
int walk_append(struct walk *walk, const struct walk_stack *stack,
		const struct walk_function *function, const struct walk_top *location, unsigned run,
		struct failure *why);

/**
 * Walk from a topmost frame to the bottom and append the frames to the chain.
 * @param ret_runs Number of runs (segments that end in a C-type link). Each appended frame's owner
 * is its run's number, newest 0.
 * @return 0, or -1 if the stack contradicts itself. The chain is then unchanged, unless it is full
 * (FAILURE_LIMIT): then it holds the leaf's end.
 */
int walk_frames(struct walk *walk, const struct walk_stack *stack, const struct walk_top *top,
		unsigned *ret_runs, struct failure *why);

#endif
