/* SPDX-License-Identifier: MIT */
/* Private to daemon: what a profile says of its recording. */
#ifndef DAEMON_RECORD_NOTES_H
#define DAEMON_RECORD_NOTES_H

#include "daemon/record.h"

enum {
	/* Room for all lines. */
	ACCOUNT_MAX = 4096,
	/* Processes that are named by their pids. */
	ACCOUNT_PIDS_MAX = 16,
	/* Threads of one reason for stops, by their numbers. */
	ACCOUNT_THREADS_MAX = 8,
};

/**
 * The numbers of a recording that has ended, by which one can judge how far its profile is to be
 * believed: lines that begin with "ljprof: " and end in a line feed. They hold no foreign text.
 * @param cpu_ns Processor time of the recorder so far.
 */
void notes_describe(const struct daemon_options *options, const struct daemon_stats *stats,
		    uint64_t cpu_ns, char ret_text[ACCOUNT_MAX]);

#endif
