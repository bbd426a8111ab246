/* SPDX-License-Identifier: MIT */
/* Private to daemon: samples by trace. */
#ifndef DAEMON_RECORDER_TRACES_H
#define DAEMON_RECORDER_TRACES_H

#include "daemon/stats.h"
#include "luastate/luastate.h"
#include "luastate/stack.h"

/** Which entry of the stats' list a trace has; NULL is an empty one. */
struct traces;

/**
 * Count a sample by its place in compiled code, and under its trace. A trace beyond
 * DAEMON_TRACES_LISTED, or whose start is unknown, counts among the unlisted ones.
 * @param function The running trace; NULL if unknown. Read when the trace is met first.
 */
void traces_count(struct traces **traces, struct daemon_stats *stats,
		  const struct format_sample *sample, const struct luastate_function *function);

/** The list stays with the stats. */
void traces_destroy(struct traces *traces);

#endif
