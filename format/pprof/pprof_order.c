/* SPDX-License-Identifier: MIT */
/* In which order did the samples of a pprof profile come, and is that true? */
#include <stdlib.h>
#include <string.h>

#include "format/pprof/pprof.h"
#include "format/pprof/pprof_reader.h"
#include "format/text/base64.h"

#include "attach/array.h"

/** Join the strings with the order. */
static int collect(const struct pprof_reader *reader, struct timeline *ret_order,
		   struct failure *why)
{
	size_t mark = strlen(PPROF_ORDER);

	for (size_t i = 0; i < reader->string_count; i++) {
		const char *text = (const char *)reader->strings[i].bytes;
		size_t len = reader->strings[i].len;

		if (len < mark || memcmp(text, PPROF_ORDER, mark) != 0)
			continue;
		if (!ARRAY_RESERVE(ret_order->bytes, ret_order->capacity, ret_order->len + len))
			return pprof_no_memory(why);
		ret_order->len +=
			base64_decode(text + mark, len - mark, ret_order->bytes + ret_order->len);
	}
	return 0;
}

/**
 * Whether the order has each sample of the file as often as the file counts it.
 * @param seen Zeroed; one count per sample.
 */
static bool fits(const struct pprof_reader *reader, const struct timeline *order, uint64_t *seen)
{
	struct timeline_cursor cursor = { 0 };

	while (timeline_next(order, &cursor)) {
		const struct pprof_sample *sample;

		if (cursor.key >= reader->sample_count || cursor.count == 0)
			return false;
		sample = &reader->samples[cursor.key];
		if (cursor.count > sample->count - seen[cursor.key])
			return false;
		seen[cursor.key] += cursor.count;
	}
	for (size_t i = 0; i < reader->sample_count; i++)
		if (seen[i] != reader->samples[i].count)
			return false;
	return true;
}

/** Add the samples in their order. Recordings follow each other: times go on where the file before
 * ended, if it has times. */
static int add_in_order(struct pprof_reader *reader, const struct timeline *order,
			struct failure *why)
{
	struct timeline *timeline = &reader->profile->timeline;
	struct timeline_cursor cursor = { 0 };
	uint64_t start_us = timeline->last_us;
	bool has_times = timeline->count == 0 || start_us > 0;

	while (timeline->is_kept && timeline_next(order, &cursor)) {
		timeline_set_next(timeline, has_times && cursor.us ? start_us + cursor.us : 0,
				  cursor.heap_bytes);
		if (timeline_add(timeline, reader->samples[cursor.key].key, cursor.count, why))
			return -1;
	}
	return 0;
}

static int add_sums(struct pprof_reader *reader, struct failure *why)
{
	struct timeline *timeline = &reader->profile->timeline;

	timeline->is_summed = true;
	for (size_t i = 0; i < reader->sample_count && timeline->is_kept; i++)
		if (reader->samples[i].count > 0 &&
		    timeline_add(timeline, reader->samples[i].key, reader->samples[i].count, why))
			return -1;
	return 0;
}

int pprof_add_order(struct pprof_reader *reader, struct failure *why)
{
	struct timeline order = { 0 };
	uint64_t *seen = calloc(reader->sample_count + 1, sizeof(*seen));
	int result = seen ? collect(reader, &order, why) : pprof_no_memory(why);

	if (result == 0)
		result = fits(reader, &order, seen) ? add_in_order(reader, &order, why)
						    : add_sums(reader, why);
	free(seen);
	timeline_deinit(&order);
	return result;
}
