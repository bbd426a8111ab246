/* SPDX-License-Identifier: MIT */
/* Private to daemon: the native walk of a thread that sleeps. */
#ifndef DAEMON_DECODE_SLEEPER_WALK_H
#define DAEMON_DECODE_SLEEPER_WALK_H

#include "daemon/decode/target.h"
#include "daemon/replay.h"

/**
 * To the caller of a native frame, where registers that were not saved below it are unknown.
 * @return As symbols_unwind_step(); FAILURE_NOT_FOUND where an unknown register is needed.
 */
int asleep_step(struct daemon_target *target, const struct luastate_memory *memory,
		struct failure *why);

#endif
