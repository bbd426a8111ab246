/* SPDX-License-Identifier: MIT */
/* Private to daemon: which recording notes does a profile contain? */
#ifndef DAEMON_RECORD_NOTES_H
#define DAEMON_RECORD_NOTES_H

#include "daemon/record.h"

enum {
	/* Room for all lines. */
	NOTES_MAX = 4096,
};

/**
 * Write the numbers of an ended recording, which show how far its profile can be trusted. Each line
 * begins with "ljprof: " and ends in a line feed. The lines contain no text of a target.
 * @param cpu_ns Processor time of the recorder so far.
 */
void notes_describe(const struct daemon_options *options, const struct daemon_stats *stats,
		    uint64_t cpu_ns, char ret_text[NOTES_MAX]);

#endif
