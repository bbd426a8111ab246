/* SPDX-License-Identifier: MIT */
/* In which order did the samples of a profile come? */
#ifndef FORMAT_PROFILE_TIMELINE_H
#define FORMAT_PROFILE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/**
 * The samples of a profile in the order of arrival, for charts of time and for measuring how
 * similar neighbouring samples are. Packed: 2 to 8 bytes per sample.
 *
 * Each sample is a sequence of ULEB128 numbers: its key times 4, plus 1 if a count follows, plus 2
 * if a heap size follows; microseconds since the sample before it; the count, if it is not 1; the
 * difference of the heap size to the one before, as 2 n for n >= 0 and -2 n - 1 for n < 0. pprof
 * profiles hold the same bytes.
 */
struct timeline {
	bool is_kept;	  /**< If not, samples are only counted. */
	bool is_optional; /**< Forgotten when it takes TIMELINE_OPTIONAL_BYTES_MAX. */
	bool is_summed;	  /**< Some samples were already added up, so their order means nothing. */
	uint8_t *bytes;
	size_t len, capacity;
	uint64_t count;	    /**< Samples in the timeline. */
	uint64_t left_out;  /**< Samples that came when TIMELINE_BYTES_MAX was full. */
	uint64_t next_us;   /**< Time of the next sample since the start, + 1; 0: unknown. */
	uint64_t next_heap; /**< Bytes in use by its VM; 0: unknown. */
	uint64_t last_us, last_heap;
};

/** About a day at 500 samples per second. */
#define TIMELINE_BYTES_MAX (192u << 20)

/** About a day at 99 samples per second. */
#define TIMELINE_OPTIONAL_BYTES_MAX (32u << 20)

void timeline_deinit(struct timeline *timeline);

/**
 * Set the time and the heap size of the next sample.
 * @param us Microseconds since the start of the recording, + 1; 0: unknown.
 */
void timeline_set_next(struct timeline *timeline, uint64_t us, uint64_t heap_bytes);

/**
 * Append a sample, or forget an optional timeline that has become too long.
 * @param key Id in the profile's `keys`.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int timeline_add(struct timeline *timeline, uint32_t key, uint64_t count, struct failure *why);

/** A position in a timeline, all 0 at first, and the last sample read. */
struct timeline_cursor {
	size_t at;
	uint64_t us, heap_bytes; /**< As for timeline_set_next(). */
	uint64_t count;
	uint32_t key;
};

/** Get the next sample. @return false at the end. */
bool timeline_next(const struct timeline *timeline, struct timeline_cursor *cursor);

#endif
