/* SPDX-License-Identifier: MIT */
/* Private to luastate: where is a coroutine's topmost frame? */
#ifndef LUASTATE_STACK_TOP_FRAME_H
#define LUASTATE_STACK_TOP_FRAME_H

#include "luastate/stack/walk.h"

/** Receives a candidate. @return whether no further one is needed. */
typedef bool walk_top_function(void *context, const struct walk_top *top);

/**
 * Offer candidates for the topmost frame of a coroutine, best first, according to its newest VM
 * frame.
 * @param resuming Whether the coroutine has resumed another one, which runs above it.
 * @param take     May walk from the candidate.
 */
void walk_top_frames(struct walk *walk, const struct walk_stack *stack,
		     const struct luastate_vm_frame *vm_frame, bool resuming,
		     walk_top_function *take, void *context);

#endif
