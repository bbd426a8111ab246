/* SPDX-License-Identifier: MIT */
/* Private to luastate: which frames has compiled code inlined? */
#ifndef LUASTATE_STACK_COMPILED_FRAMES_H
#define LUASTATE_STACK_COMPILED_FRAMES_H

#include "luastate/stack/walk.h"

/** Read the VM's state into the chain and the walk. */
void walk_read_state(struct walk *walk);

/** Add the frames that compiled code has inlined, or the trace as a frame if they are unknown.
 * Call this after the stacks are walked. */
void walk_add_compiled(struct walk *walk);

#endif
