/* SPDX-License-Identifier: MIT */
/* Which sample took which time of which thread? */
#ifndef FORMAT_REPORT_CHART_H
#define FORMAT_REPORT_CHART_H

#include "format/profile/profile_internal.h"

/**
 * One sample on a time axis. It stands for the ticks that end with its own: it begins a period
 * before for each, on the raster of the ticks, as these come at random moments of their periods;
 * and where the thread's last sample ends, if that is later. Where times are not known samples
 * follow each other.
 */
struct chart_event {
	uint64_t begin_ns; /**< Since the begin. */
	uint64_t count;
	uint32_t key, track; /**< Id in the profile's `keys`, index in `tracks`. */
};

/** All that one thread was seen at, or, where threads are not known, everything. */
struct chart_track {
	int32_t pid, tid;
	const char *name;    /**< Of the thread, borrowed from the profile; NULL: not known. */
	size_t first, count; /**< Its events, in their order. */
	uint64_t samples, end_ns;
};

/** What a VM's collector held, as a thread that ran in it showed. */
struct chart_heap {
	uint64_t ns, bytes;
	uint32_t track;
};

/** A timeline by threads. */
struct chart {
	const struct format_profile *profile;
	struct chart_track *tracks; /**< In the order in which they were met. */
	uint32_t track_count;
	struct chart_event *events; /**< Those of a track are neighbours. */
	size_t event_count;
	struct chart_heap *heaps; /**< Where it changes, those of a track neighbours. */
	size_t heap_count;
	uint64_t period_ns;
	bool has_period; /**< Else a sample lasts a millisecond, as nothing tells. */
};

/** @param profile Borrowed; it keeps a timeline. */
int chart_init(struct chart *chart, const struct format_profile *profile, struct failure *why);
void chart_deinit(struct chart *chart);

/** Where an event ends, since the begin; never before it begins. */
uint64_t chart_end_ns(const struct chart *chart, const struct chart_event *event);

/** Events of all tracks in the order of their begin; the tracks' `first` mean nothing from now on.
 */
void chart_sort_by_time(struct chart *chart);

#endif
