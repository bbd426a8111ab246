/* SPDX-License-Identifier: MIT */
/* Which sample took which time of which thread? */
#ifndef FORMAT_REPORT_CHART_H
#define FORMAT_REPORT_CHART_H

#include "format/profile/profile_internal.h"

/** One sample on a time axis. It lasts the periods of its ticks and ends with the period of the
 * last one. If the thread's previous sample ends later than this one would begin, this one
 * begins there. Times are on the raster of periods, because a tick comes at a random moment
 * within its period. If times are unknown, samples follow each other. */
struct chart_event {
	uint64_t begin_ns; /**< Nanoseconds since the start. */
	uint64_t count;
	uint32_t key, track; /**< Id in the profile's `keys`, index in `tracks`. */
};

/** The samples of one thread, or all samples if threads are unknown. */
struct chart_track {
	int32_t pid, tid;
	const char *name;    /**< Name of the thread, borrowed from the profile; NULL: unknown. */
	size_t first, count; /**< Range of its events, in order. */
	uint64_t samples, end_ns;
};

/** Bytes in use by a VM's collector, as seen by a thread that ran in the VM. */
struct chart_heap {
	uint64_t ns, bytes;
	uint32_t track;
};

/** A timeline by thread. */
struct chart {
	const struct format_profile *profile;
	struct chart_track *tracks; /**< In the order of first appearance. */
	uint32_t track_count;
	struct chart_event *events; /**< Events of a track are neighbours. */
	size_t event_count;
	struct chart_heap *heaps; /**< Changes of the heap; those of a track are neighbours. */
	size_t heap_count;
	uint64_t period_ns;
	bool has_period; /**< If not, a sample lasts a millisecond. */
};

/** @param profile Borrowed; must keep a timeline. */
int chart_init(struct chart *chart, const struct format_profile *profile, struct failure *why);
void chart_deinit(struct chart *chart);

/** @return End of an event since the start; never before it begins. */
uint64_t chart_end_ns(const struct chart *chart, const struct chart_event *event);

/** Sort the events of all tracks by begin. Then `first` of the tracks is invalid. */
void chart_sort_by_time(struct chart *chart);

#endif
