/* SPDX-License-Identifier: MIT */
/* In which order did the samples of a profile come? */
#ifndef FORMAT_PROFILE_TIMELINE_H
#define FORMAT_PROFILE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/**
 * The samples of a profile in the order in which they came, for what charts time, or asks how
 * alike neighbours are. Packed: some 2 to 8 bytes a sample.
 */
struct timeline {
	bool is_kept;	/**< Else samples are only summed up. */
	bool is_summed; /**< Some of them were summed up before, so their order tells nothing. */
	uint8_t *bytes;
	size_t len, capacity;
	uint64_t count;	    /**< Samples that are distinguished here. */
	uint64_t left_out;  /**< Those that came when TIMELINE_BYTES_MAX were full. */
	uint64_t next_us;   /**< When the next one was taken, since the begin; 0: not known. */
	uint64_t next_heap; /**< Bytes in use by its VM; 0: not known. */
	uint64_t last_us, last_heap;
};

/** A day of 500 samples a second, or so. */
#define TIMELINE_BYTES_MAX (192u << 20)

void timeline_deinit(struct timeline *timeline);

/** Say when the sample was taken that is added next, and how much its VM holds.
 *  @param us Microseconds since the recording's begin, from 1 on. */
void timeline_set_next(struct timeline *timeline, uint64_t us, uint64_t heap_bytes);

/** @param key Id in the profile's `keys`. @return 0, or -1 with FAILURE_NO_MEMORY. */
int timeline_add(struct timeline *timeline, uint32_t key, uint64_t count, struct failure *why);

/** A place in a timeline, all 0 at first, and the sample that was met last. */
struct timeline_cursor {
	size_t at;
	uint64_t us, heap_bytes; /**< As of timeline_set_next(). */
	uint64_t count;
	uint32_t key;
};

/** @return Whether there was another sample. */
bool timeline_next(const struct timeline *timeline, struct timeline_cursor *cursor);

#endif
