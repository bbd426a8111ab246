/* SPDX-License-Identifier: MIT */
/* Private to attach: the inside of a copy. */
#ifndef ATTACH_IMAGE_BULK_COPY_H
#define ATTACH_IMAGE_BULK_COPY_H

#include "attach/freeze.h"

/** A wanted range, and how much of it was read. */
struct copy_range {
	uint64_t start;
	size_t wanted, len;
	size_t offset; /* of its bytes */
};

struct attach_copy {
	struct copy_range *ranges; /* as wanted; by address once finished */
	size_t count, size;
	size_t max_bytes, wanted_bytes, read_bytes;
	uint8_t *bytes; /* NULL until there is room */
	size_t last;	/* range that was found last */
	struct attach_reader reader;
};

/** Take the memory for all ranges, which nobody has to wait for later. What was read before is
 *  forgotten. @return 0 or -1. */
int copy_prepare(struct attach_copy *copy, struct failure *why);

/**
 * Read all ranges, until the time is over.
 * @param end_ns By CLOCK_MONOTONIC.
 * @param ret_unread Ranges that could not be read to their ends, though there was time.
 * @return 1 where time was over, 0, or -1 with FAILURE_GONE or FAILURE_SYSTEM.
 */
int copy_read(struct attach_copy *copy, const struct attach_process *process, uint64_t end_ns,
	      size_t *ret_unread, struct failure *why);

/** Make what was read known to the reader. */
void copy_finish(struct attach_copy *copy);

#endif
