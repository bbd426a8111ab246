/* SPDX-License-Identifier: MIT */
/* Private to luastate: the topmost frame of a coroutine. */
#ifndef LUASTATE_STACK_TOP_FRAME_H
#define LUASTATE_STACK_TOP_FRAME_H

#include "luastate/stack/walk.h"

/** Takes a candidate, or not. @return whether no other one is wanted. */
typedef bool walk_top_function(void *context, const struct walk_top *top);

/**
 * Offer candidates for the topmost frame of a coroutine, best first, in view of its newest C frame.
 * @param resuming Whether it has resumed another coroutine, which runs above it.
 * @param take     May walk from the candidate.
 */
void walk_top_frames(struct walk *walk, const struct walk_stack *stack,
		     const struct luastate_vm_frame *vm_frame, bool resuming,
		     walk_top_function *take, void *context);

#endif
