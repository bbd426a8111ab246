/* SPDX-License-Identifier: MIT */
/* How are the numbers of a live session shown to people? */
#ifndef CLI_TOP_DRAW_TOP_NUMBERS_H
#define CLI_TOP_DRAW_TOP_NUMBERS_H

#include "daemon/live.h"

/** What the VMs do, in words for people. */
enum top_activity {
	TOP_INTERPRETER,
	TOP_COMPILED,
	TOP_C,
	TOP_GC,
	TOP_RECORDING,
	TOP_EXITS,
	TOP_UNSCHEDULED, /**< Ready, and waiting for a processor. */
	TOP_IDLE,
	TOP_ACTIVITY_COUNT,
};

const char *top_activity_name(enum top_activity activity);

/** Describe how samples were taken and the p99 of their duration, then which threads were stopped
 * although the kernel copies others, and why: "copied p99 9 us". */
void top_describe_capture(const struct daemon_live_header *header, char *ret_text, size_t len);

/**
 * Count samples by activity.
 * @param states, outcomes Samples by state and by outcome.
 * @param ret_counts TOP_ACTIVITY_COUNT.
 */
void top_count_activities(const uint32_t *states, const uint32_t *outcomes, uint64_t *ret_counts);

/** Full chains in percent of the samples of running threads that had a VM. */
double top_full_percent(const uint64_t *outcomes);

/** Count per second of a point in the history. */
double top_rate(uint64_t count, const struct daemon_history_point *point);

/**
 * Seconds since a process started.
 * @return -1 if unknown.
 */
double top_uptime_s(const struct daemon_live_header *header, size_t process);

#endif
