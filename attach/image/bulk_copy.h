/* SPDX-License-Identifier: MIT */
/* Private to attach: what does a copy of memory consist of? */
#ifndef ATTACH_IMAGE_BULK_COPY_H
#define ATTACH_IMAGE_BULK_COPY_H

#include "attach/freeze.h"

/** A wanted range; `len` bytes of it were read. */
struct copy_range {
	uint64_t start;
	size_t wanted, len;
	size_t offset; /* of its bytes in attach_copy.bytes */
};

struct attach_copy {
	struct copy_range *ranges; /* as requested; by address after copy_finish() */
	size_t count, size;
	size_t max_bytes, wanted_bytes, read_bytes;
	uint8_t *bytes; /* NULL before copy_prepare() */
	size_t last;	/* the range of the last lookup */
	struct attach_reader reader;
};

/**
 * Allocate the memory for all ranges, so that a freeze does not wait for it. Forgets earlier bytes.
 * @return 0 or -1.
 */
int copy_prepare(struct attach_copy *copy, struct failure *why);

/**
 * Read all ranges, until the time is over.
 * @param end_ns CLOCK_MONOTONIC.
 * @param ret_unread Ranges that could not be read to their ends, although there was time.
 * @return 1 if the time is over, 0, or -1 with FAILURE_GONE or FAILURE_SYSTEM.
 */
int copy_read(struct attach_copy *copy, const struct attach_process *process, uint64_t end_ns,
	      size_t *ret_unread, struct failure *why);

/** Sort the ranges for the reader. */
void copy_finish(struct attach_copy *copy);

#endif
