/* SPDX-License-Identifier: MIT */
/* How is the order of samples packed and unpacked? */
#include "format/profile/timeline.h"

#include <stdlib.h>

#include "attach/array.h"
#include "format/text/uleb.h"

/* Flags in the first number of a sample: what else is stored. */
enum { HAS_COUNT = 1, HAS_HEAP = 2, FLAG_BITS = 2 };

/* Key with flags, time, count, heap. */
#define EVENT_MAX (4 * (size_t)FORMAT_ULEB_MAX)

void timeline_deinit(struct timeline *timeline)
{
	free(timeline->bytes);
	*timeline = (struct timeline){ 0 };
}

void timeline_set_next(struct timeline *timeline, uint64_t us, uint64_t heap_bytes)
{
	timeline->next_us = us;
	timeline->next_heap = heap_bytes;
}

static int grow(struct timeline *timeline, struct failure *why)
{
	return ARRAY_RESERVE(timeline->bytes, timeline->capacity, timeline->len + EVENT_MAX)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the samples in order");
}

static void put(struct timeline *timeline, uint64_t value)
{
	timeline->len += format_uleb_encode(value, timeline->bytes + timeline->len);
}

/** Map small differences, positive or negative, to small numbers. */
static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (value & 1 ? UINT64_MAX : 0);
}

int timeline_add(struct timeline *timeline, uint32_t key, uint64_t count, struct failure *why)
{
	bool has_heap = timeline->next_heap != timeline->last_heap;
	uint64_t us = timeline->next_us;

	if (timeline->is_optional && timeline->len + EVENT_MAX > TIMELINE_OPTIONAL_BYTES_MAX) {
		timeline_deinit(timeline);
		return 0;
	}
	if (timeline->len + EVENT_MAX > TIMELINE_BYTES_MAX) {
		timeline->left_out += count;
		return 0;
	}
	if (grow(timeline, why))
		return -1;
	if (us < timeline->last_us)
		us = timeline->last_us;
	put(timeline,
	    (uint64_t)key << FLAG_BITS | (count != 1 ? HAS_COUNT : 0) | (has_heap ? HAS_HEAP : 0));
	put(timeline, us - timeline->last_us);
	if (count != 1)
		put(timeline, count);
	if (has_heap)
		put(timeline, zigzag(timeline->next_heap - timeline->last_heap));
	timeline->last_us = us;
	timeline->last_heap = timeline->next_heap;
	timeline->count += count;
	return 0;
}

static uint64_t take(const struct timeline *timeline, struct timeline_cursor *cursor)
{
	struct format_uleb uleb = { 0 };

	/* Fast path: most numbers are small. */
	if (cursor->at < timeline->len && timeline->bytes[cursor->at] < 0x80)
		return timeline->bytes[cursor->at++];
	while (cursor->at < timeline->len &&
	       format_uleb_decode(&uleb, timeline->bytes[cursor->at++]) == FORMAT_ULEB_MORE)
		;
	return uleb.value;
}

bool timeline_next(const struct timeline *timeline, struct timeline_cursor *cursor)
{
	uint64_t head;

	if (cursor->at >= timeline->len)
		return false;
	head = take(timeline, cursor);
	cursor->key = (uint32_t)(head >> FLAG_BITS);
	cursor->us += take(timeline, cursor);
	cursor->count = head & HAS_COUNT ? take(timeline, cursor) : 1;
	if (head & HAS_HEAP)
		cursor->heap_bytes += unzigzag(take(timeline, cursor));
	return true;
}
