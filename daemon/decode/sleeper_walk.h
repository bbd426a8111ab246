/* SPDX-License-Identifier: MIT */
/* Private to daemon: how is the native stack of a sleeping thread walked? */
#ifndef DAEMON_DECODE_SLEEPER_WALK_H
#define DAEMON_DECODE_SLEEPER_WALK_H

#include "daemon/decode/target.h"
#include "daemon/replay.h"

/**
 * Step to the caller of a native frame, if registers that no frame below has saved are unknown.
 * @return As symbols_unwind_step(); FAILURE_NOT_FOUND if an unknown register is necessary.
 */
int asleep_step(struct daemon_target *target, const struct luastate_memory *memory,
		struct failure *why);

#endif
