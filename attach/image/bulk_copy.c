/* SPDX-License-Identifier: MIT */
/* How do we make a large copy of memory within a deadline? */
#include "attach/image/bulk_copy.h"
#include "attach/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#include "attach/array.h"
#include "attach/process/process_internal.h"

enum {
	/* Bytes between two checks of the clock: some 100 us of copying. */
	PIECE_BYTES = 512 * 1024,
	PIECE_RANGES = 256,
};

struct attach_copy *attach_copy_create(size_t max_bytes)
{
	struct attach_copy *copy = calloc(1, sizeof(*copy));

	if (copy)
		copy->max_bytes = max_bytes;
	return copy;
}

void attach_copy_destroy(struct attach_copy *copy)
{
	if (!copy)
		return;
	if (copy->bytes)
		munmap(copy->bytes, copy->wanted_bytes);
	free(copy->ranges);
	free(copy);
}

size_t attach_copy_bytes(const struct attach_copy *copy)
{
	return copy->read_bytes;
}

int attach_copy_want(struct attach_copy *copy, uint64_t start, uint64_t end, struct failure *why)
{
	size_t room = copy->max_bytes - copy->wanted_bytes;
	bool fits = end - start <= room;
	struct copy_range *last = copy->count ? &copy->ranges[copy->count - 1] : NULL;
	size_t len = fits ? (size_t)(end - start) : room;

	assert(!copy->bytes);
	if (last && last->start + last->wanted == start) {
		last->wanted += len;
	} else if (len) {
		if (!ARRAY_RESERVE(copy->ranges, copy->size, copy->count + 1))
			return failure_set_errno(why, ENOMEM, 0, "copy memory");
		copy->ranges[copy->count++] = (struct copy_range){ .start = start,
								   .wanted = len,
								   .offset = copy->wanted_bytes };
	}
	copy->wanted_bytes += len;
	return fits ? 0 : failure_set(why, FAILURE_LIMIT, 0, 0, start, "copy more memory");
}

/* ---- Reading ---------------------------------------------------------------------------- */

/** Parts of ranges that one call reads. */
struct piece {
	struct iovec local[PIECE_RANGES], remote[PIECE_RANGES];
	size_t count;
};

static void fill_piece(const struct attach_copy *copy, size_t index, struct piece *ret_piece)
{
	size_t left = PIECE_BYTES;

	ret_piece->count = 0;
	for (; index < copy->count && ret_piece->count < PIECE_RANGES && left; index++) {
		const struct copy_range *range = &copy->ranges[index];
		size_t len = range->wanted - range->len < left ? range->wanted - range->len : left;

		ret_piece->local[ret_piece->count] =
			(struct iovec){ copy->bytes + range->offset + range->len, len };
		ret_piece->remote[ret_piece->count++] =
			(struct iovec){ (void *)(uintptr_t)(range->start + range->len), len };
		left -= len;
	}
}

/* @return the first incomplete range, from @p index on. */
static size_t note_piece(struct attach_copy *copy, size_t index, size_t len)
{
	copy->read_bytes += len;
	while (len) {
		struct copy_range *range = &copy->ranges[index];
		size_t rest = range->wanted - range->len;

		if (len < rest) {
			range->len += len;
			return index;
		}
		range->len += rest;
		len -= rest;
		index++;
	}
	return index;
}

static int by_offset(const void *a, const void *b)
{
	const struct copy_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Forget the bytes, and restore the order of attach_copy_want(). */
static void rewind_copy(struct attach_copy *copy)
{
	if (copy->count)
		qsort(copy->ranges, copy->count, sizeof(*copy->ranges), by_offset);
	for (size_t i = 0; i < copy->count; i++)
		copy->ranges[i].len = 0;
	copy->read_bytes = 0;
}

int copy_prepare(struct attach_copy *copy, struct failure *why)
{
	void *bytes;

	rewind_copy(copy);
	if (copy->bytes || copy->wanted_bytes == 0)
		return 0;
	bytes = mmap(NULL, copy->wanted_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return failure_set_errno(why, errno, 0, "allocate memory for a copy");
	copy->bytes = bytes;
	/* Do not share the memory with a forked child: sharing costs time in the fork and in each
	 * write. */
	madvise(bytes, copy->wanted_bytes, MADV_DONTFORK);
	madvise(bytes, copy->wanted_bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < copy->wanted_bytes; at += 4096)
		copy->bytes[at] = 1;
	return 0;
}

int copy_read(struct attach_copy *copy, const struct attach_process *process, uint64_t end_ns,
	      size_t *ret_unread, struct failure *why)
{
	struct piece piece;
	int ret = 0;

	*ret_unread = 0;
	for (size_t index = 0; index < copy->count && ret == 0;) {
		size_t wanted = 0;
		ssize_t len;

		fill_piece(copy, index, &piece);
		for (size_t i = 0; i < piece.count; i++)
			wanted += piece.local[i].iov_len;
		len = process_vm_readv(process->memory_id, piece.local, piece.count, piece.remote,
				       piece.count, 0);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != EFAULT)
			ret = failure_set_errno(why, errno, process->pid, "read memory");
		else if (clock_now_ns() >= end_ns)
			ret = 1; /* its last bytes may be too late */
		if (ret != 0)
			break;
		index = note_piece(copy, index, len < 0 ? 0 : (size_t)len);
		if (len < (ssize_t)wanted) {
			++*ret_unread;
			index++;
		}
	}
	return ret;
}

void copy_finish(struct attach_copy *copy)
{
	if (copy->count)
		qsort(copy->ranges, copy->count, sizeof(*copy->ranges), array_by_first_u64);
}

/* ---- Reader ----------------------------------------------------------------------------- */

static bool holds(const struct attach_copy *copy, size_t index, uint64_t address)
{
	const struct copy_range *range = &copy->ranges[index];

	return address >= range->start && address - range->start < range->len;
}

/* @return whether a range holds the byte; copy->last is then its index. */
static bool find(struct attach_copy *copy, uint64_t address)
{
	size_t end;

	if (copy->last < copy->count && holds(copy, copy->last, address))
		return true;
	end = ARRAY_SEARCH(copy->count, i, copy->ranges[i].start <= address);
	if (end == 0 || !holds(copy, end - 1, address))
		return false;
	copy->last = end - 1;
	return true;
}

static int read_copy(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	struct attach_copy *copy = self;
	uint8_t *to = ret_bytes;
	uint64_t at = address.value;

	while (len) {
		const struct copy_range *range;
		size_t part;

		if (!find(copy, at))
			return failure_set(why, FAILURE_FAULT, 0, 0, at, "read copied memory");
		range = &copy->ranges[copy->last];
		part = range->len - (size_t)(at - range->start);
		part = part < len ? part : len;
		memcpy(to, copy->bytes + range->offset + (at - range->start), part);
		to += part;
		at += part;
		len -= part;
	}
	return 0;
}

const struct attach_reader *attach_copy_reader(struct attach_copy *copy)
{
	copy->reader = (struct attach_reader){ .read = read_copy, .self = copy };
	return &copy->reader;
}
