/* SPDX-License-Identifier: MIT */
/* Private to luastate: which outcome does a walk give a chain? */
#ifndef LUASTATE_STACK_MATCH_RUNS_H
#define LUASTATE_STACK_MATCH_RUNS_H

#include "luastate/stack/walk.h"

/** The outcome of a failed walk. */
enum luastate_outcome walk_outcome_of(const struct failure *why);

/** Whether a function's line table was gone when it was read. The first line needs no table. */
bool walk_lacks_line(const struct luastate_frame *frame);

#endif
