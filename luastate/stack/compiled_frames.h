/* SPDX-License-Identifier: MIT */
/* Private to luastate: frames of compiled code. */
#ifndef LUASTATE_STACK_COMPILED_FRAMES_H
#define LUASTATE_STACK_COMPILED_FRAMES_H

#include "luastate/stack/walk.h"

/** Read the VM's state, for the chain and for what follows. */
void walk_read_state(struct walk *walk);

/** Add the frames that compiled code has inlined, once the stacks are walked; or where they are not
 *  known, the trace as a frame. */
void walk_add_compiled(struct walk *walk);

#endif
