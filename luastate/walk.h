/* SPDX-License-Identifier: MIT */
/* Private to luastate: the frame walk. */
#ifndef LUASTATE_WALK_H
#define LUASTATE_WALK_H

#include "luastate/state.h"

/** One coroutine's Lua stack, as its lua_State tells. Addresses of slots. */
struct walk_stack {
	const struct luastate_layout *layout;
	uint64_t L, G;
	uint64_t bottom; /* lowest base: nothing below it is a frame */
	uint64_t limit;	 /* no base is above it */
	uint64_t base;	 /* L->base */
};

/** A function found in a frame's function slot. */
struct walk_function {
	enum luastate_kind kind;
	struct state_proto *proto; /* Lua */
	uint64_t f, pc;		   /* C: entry; fast: address of its bytecode */
	int ffid;
	bool dummy; /* the slot holds a thread: bottom frame, no function */
};

/** Where a stack's topmost frame is, and where its function stands. */
struct walk_top {
	uint64_t base;
	uint64_t pc; /* address of the current instruction, 0 unknown */
};

/** All about one sample's walk. */
struct walk {
	struct luastate *state;
	const struct attach_reader *stopped; /* stacks, coroutines, the VM's state */
	const struct attach_reader *reader;  /* all else */
	const struct attach_registers *regs;
	struct luastate_chain *chain;
	unsigned steps_left, names_left;
};

int walk_read_stack(struct walk *walk, uint64_t L, struct walk_stack *ret_stack,
		    struct failure *why);

/** Function of the frame at @p base. */
int walk_read_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		       struct walk_function *ret_function, struct failure *why);

bool walk_is_base(const struct walk_stack *stack, uint64_t base);

/**
 * Walk from a topmost frame to the bottom and append the frames to the chain.
 * @param ret_runs Number of runs (segments that end in a C-type link); each appended frame's owner
 *                 is its run's number, newest 0.
 * @return 0, or -1 where the stack contradicts itself; the chain is then as before, unless it is
 *         full (FAILURE_LIMIT): then it holds the leaf's end.
 */
int walk_frames(struct walk *walk, const struct walk_stack *stack, const struct walk_top *top,
		unsigned *ret_runs, struct failure *why);

/** Candidates for the topmost frame of a coroutine, best first, in view of its newest C frame.
 * @return their number. */
size_t walk_leaf_tops(struct walk *walk, const struct walk_stack *stack,
		      const struct luastate_cframe *cframe, struct walk_top *ret_tops, size_t max);

enum { WALK_TOPS = 12 };

#endif
