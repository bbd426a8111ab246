/* SPDX-License-Identifier: MIT */
/* Private to daemon: how many samples has each trace? */
#ifndef DAEMON_RECORDER_TRACES_H
#define DAEMON_RECORDER_TRACES_H

#include "daemon/stats.h"
#include "luastate/luastate.h"
#include "luastate/stack.h"

/** Index from traces to entries of the stats' list; NULL is an empty index. */
struct traces;

/**
 * Count a sample by its location in compiled code, and for its trace. If the trace is beyond
 * DAEMON_TRACES_LISTED, or its start is unknown, count it as unlisted.
 * @param function The running trace; NULL if unknown. Read only for a new trace.
 */
void traces_count(struct traces **traces, struct daemon_stats *stats,
		  const struct format_sample *sample, const struct luastate_function *function);

/** Free the index; the list stays with the stats. */
void traces_destroy(struct traces *traces);

#endif
