/* SPDX-License-Identifier: MIT */
/* Numbers of a live session, in words of people. */
#ifndef CLI_TOP_DRAW_TOP_NUMBERS_H
#define CLI_TOP_DRAW_TOP_NUMBERS_H

#include "daemon/live.h"

/** What the VMs do, in words of people. */
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

/** How samples were taken and how long that took for nearly all of them, with what was stopped
 *  although the kernel copies threads, and why: "copied p99 9 us". */
void top_describe_capture(const struct daemon_live_header *header, char *ret_text, size_t len);

/** Looks at threads by activity, of states and outcomes. @param ret_counts TOP_ACTIVITY_COUNT. */
void top_count_activities(const uint32_t *states, const uint32_t *outcomes, uint64_t *ret_counts);

/** Full chains in percent of looks at running threads that had a VM. */
double top_full_percent(const uint64_t *outcomes);

/** Per second of a moment. */
double top_rate(uint64_t count, const struct daemon_history_point *moment);

/** How long ago a process began. @return -1 unknown. */
double top_uptime_s(const struct daemon_live_header *header, size_t process);

#endif
