/* SPDX-License-Identifier: MIT */
/* How are samples placed on a time axis? */
#include "format/report/chart.h"

#include <stdlib.h>

#include "attach/array.h"
#include "format/data/map.h"

/** Used if the file does not tell the period. */
#define UNKNOWN_PERIOD_NS 1000000

/** Bound of times in hostile files: some decades. */
#define TIME_MAX_NS ((uint64_t)1 << 60)

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "chart the samples");
}

/* ---- Threads ---------------------------------------------------------------------------- */

/** Working data while events are sorted into tracks. */
struct builder {
	struct chart *chart;
	struct format_addrmap tracks; /* Track by pid and tid. */
	uint32_t capacity;
	uint32_t *track_of; /* By id in the profile's `keys`. */
	size_t *next;	    /* By track: index of its next event. */
	uint64_t *bytes;    /* By track: heap bytes so far. */
	size_t heap_capacity;
};

static int add_track(struct builder *builder, const struct profile_labels *labels,
		     uint32_t *ret_track, struct failure *why)
{
	struct chart *chart = builder->chart;
	uint64_t key = (uint64_t)(uint32_t)labels->pid << 32 | (uint32_t)labels->tid, known;

	if (format_addrmap_get(&builder->tracks, key, &known)) {
		*ret_track = (uint32_t)known;
		return 0;
	}
	if (!ARRAY_RESERVE(chart->tracks, builder->capacity, chart->track_count + 1))
		return no_memory(why);
	*ret_track = chart->track_count;
	chart->tracks[chart->track_count++] =
		(struct chart_track){ .pid = labels->pid, .tid = labels->tid };
	return format_addrmap_set(&builder->tracks, key, *ret_track, why);
}

static int find_tracks(struct builder *builder, struct failure *why)
{
	const struct format_profile *profile = builder->chart->profile;
	uint32_t count = intern_count(profile->keys);

	builder->track_of = calloc((size_t)count + 1, sizeof(*builder->track_of));
	if (!builder->track_of)
		return no_memory(why);
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_labels *labels =
			profile_labels(profile, profile_sample(profile, i).labels);

		if (add_track(builder, labels, &builder->track_of[i], why))
			return -1;
		/* A thread may change its name; the last name is used. */
		if (labels->thread)
			builder->chart->tracks[builder->track_of[i]].name =
				profile_string(profile, labels->thread);
	}
	return 0;
}

/** Get the next sample. Without a timeline, all equal samples are one. */
static bool next_sample(const struct format_profile *profile, struct timeline_cursor *cursor)
{
	if (profile->timeline.is_kept)
		return timeline_next(&profile->timeline, cursor);
	if (cursor->at >= intern_count(profile->keys))
		return false;
	cursor->key = (uint32_t)cursor->at++;
	cursor->count = profile->key_counts[cursor->key];
	return true;
}

/** Allocate all events; the events of a track are neighbours. */
static int make_room(struct builder *builder, struct failure *why)
{
	struct chart *chart = builder->chart;
	struct timeline_cursor cursor = { 0 };
	size_t first = 0;

	while (next_sample(chart->profile, &cursor)) {
		chart->tracks[builder->track_of[cursor.key]].count++;
		chart->event_count++;
	}
	chart->events = calloc(chart->event_count + 1, sizeof(*chart->events));
	builder->next = calloc((size_t)chart->track_count + 1, sizeof(*builder->next));
	builder->bytes = calloc((size_t)chart->track_count + 1, sizeof(*builder->bytes));
	if (!chart->events || !builder->next || !builder->bytes)
		return no_memory(why);
	for (uint32_t i = 0; i < chart->track_count; i++) {
		chart->tracks[i].first = builder->next[i] = first;
		first += chart->tracks[i].count;
	}
	return 0;
}

/* ---- Time ------------------------------------------------------------------------------- */

/** @return Nanoseconds of @p count samples. */
static uint64_t length_of(const struct chart *chart, uint64_t count)
{
	uint64_t ns;

	if (__builtin_mul_overflow(count, chart->period_ns, &ns) || ns > TIME_MAX_NS)
		return TIME_MAX_NS;
	return ns;
}

/** @return The end of the tick period that contains a sample; 0: unknown. */
static uint64_t field_end(const struct chart *chart, uint64_t us)
{
	uint64_t ns;

	if (!us || __builtin_mul_overflow(us, 1000, &ns) || ns > TIME_MAX_NS ||
	    chart->period_ns > TIME_MAX_NS)
		return 0;
	return (ns / chart->period_ns + 1) * chart->period_ns;
}

uint64_t chart_end_ns(const struct chart *chart, const struct chart_event *event)
{
	uint64_t end_ns = event->begin_ns + length_of(chart, event->count);

	return end_ns < TIME_MAX_NS ? end_ns : TIME_MAX_NS;
}

static void place_event(struct chart *chart, struct chart_track *track, struct chart_event *event,
			uint64_t us)
{
	uint64_t length = length_of(chart, event->count), end = field_end(chart, us);

	event->begin_ns =
		end > length && end - length > track->end_ns ? end - length : track->end_ns;
	if (event->begin_ns > TIME_MAX_NS)
		event->begin_ns = TIME_MAX_NS;
	track->end_ns = chart_end_ns(chart, event);
	track->samples += event->count;
}

static int note_heap(struct builder *builder, const struct chart_event *event, uint64_t bytes,
		     struct failure *why)
{
	struct chart *chart = builder->chart;

	if (!ARRAY_RESERVE(chart->heaps, builder->heap_capacity, chart->heap_count + 1))
		return no_memory(why);
	chart->heaps[chart->heap_count++] =
		(struct chart_heap){ chart_end_ns(chart, event), bytes, event->track };
	return 0;
}

static int fill(struct builder *builder, struct failure *why)
{
	struct chart *chart = builder->chart;
	struct timeline_cursor cursor = { 0 };

	while (next_sample(chart->profile, &cursor)) {
		uint32_t track = builder->track_of[cursor.key];
		struct chart_event *event = &chart->events[builder->next[track]++];

		*event = (struct chart_event){ .key = cursor.key,
					       .track = track,
					       .count = cursor.count };
		place_event(chart, &chart->tracks[track], event, cursor.us);
		if (cursor.heap_bytes && cursor.heap_bytes != builder->bytes[track]) {
			if (note_heap(builder, event, cursor.heap_bytes, why))
				return -1;
			builder->bytes[track] = cursor.heap_bytes;
		}
	}
	return 0;
}

static int compare_heaps(const void *left, const void *right)
{
	const struct chart_heap *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* ---- Whole charts ----------------------------------------------------------------------- */

int chart_init(struct chart *chart, const struct format_profile *profile, struct failure *why)
{
	struct builder builder = { .chart = chart };
	int result;

	*chart = (struct chart){ .profile = profile,
				 .period_ns = profile->period_ns ? profile->period_ns
								 : UNKNOWN_PERIOD_NS,
				 .has_period = profile->period_ns > 0 };
	result = find_tracks(&builder, why) || make_room(&builder, why) || fill(&builder, why);
	format_addrmap_deinit(&builder.tracks);
	free(builder.track_of);
	free(builder.next);
	free(builder.bytes);
	if (chart->heap_count > 0)
		qsort(chart->heaps, chart->heap_count, sizeof(*chart->heaps), compare_heaps);
	if (!result)
		return 0;
	chart_deinit(chart);
	return -1;
}

void chart_deinit(struct chart *chart)
{
	free(chart->tracks);
	free(chart->events);
	free(chart->heaps);
	*chart = (struct chart){ 0 };
}

static int compare_events(const void *left, const void *right)
{
	const struct chart_event *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->track < b->track ? -1 : a->track > b->track;
}

void chart_sort_by_time(struct chart *chart)
{
	if (chart->track_count > 1)
		qsort(chart->events, chart->event_count, sizeof(*chart->events), compare_events);
}
