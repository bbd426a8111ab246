/* SPDX-License-Identifier: MIT */
/* How does a stop read many small things in few calls? */
#include "attach/thread.h"
#include "attach/process/process_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
	/* Longer reads are worth a call of their own, every time. */
	SHORT_BYTES = 16384,
	READS_NOTED = 1024,
	PAGE_BYTES = 4096, /* the smallest page size */
	/* Pages that no piece has, by the lower bits of their numbers. A power of 2. */
	PAGES = 32,
};

struct noted_read {
	uint64_t start;
	uint32_t len;
};

struct attach_fetcher {
	const struct attach_process *process;
	const struct attach_reader *reader; /* NULL: the process's memory */
	const struct attach_pieces *pieces;
	size_t offsets[ATTACH_PIECES]; /* of each piece in bytes */
	uint32_t there;		       /* pieces that could be read: the first ones */
	uint32_t last;		       /* piece of the last read */
	struct noted_read reads[READS_NOTED];
	size_t read_count;
	uint64_t pages[PAGES]; /* addresses; 0: none */
	uint8_t page_bytes[PAGES][PAGE_BYTES];
	uint8_t bytes[ATTACH_PIECES_BYTES];
};

int attach_fetcher_create(struct attach_fetcher **ret_fetcher, struct failure *why)
{
	*ret_fetcher = calloc(1, sizeof(**ret_fetcher));
	return *ret_fetcher ? 0 : failure_set_errno(why, ENOMEM, 0, "read threads");
}

void attach_fetcher_destroy(struct attach_fetcher *fetcher)
{
	free(fetcher);
}

static void begin(struct attach_fetcher *fetcher)
{
	fetcher->read_count = 0;
	fetcher->there = fetcher->last = 0;
	memset(fetcher->pages, 0, sizeof(fetcher->pages));
}

void attach_fetcher_begin(struct attach_fetcher *fetcher, const struct attach_process *process,
			  const struct attach_pieces *pieces)
{
	struct iovec all = { .iov_base = fetcher->bytes }, remote[ATTACH_PIECES];
	ssize_t len;

	begin(fetcher);
	fetcher->process = process;
	fetcher->reader = NULL;
	fetcher->pieces = pieces;
	for (uint32_t i = 0; i < pieces->count; i++) {
		remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)pieces->piece[i].start,
					    .iov_len = pieces->piece[i].len };
		fetcher->offsets[i] = all.iov_len;
		all.iov_len += pieces->piece[i].len;
	}
	len = process_vm_readv(process->memory_id, &all, 1, remote, pieces->count, 0);
	while (fetcher->there < pieces->count &&
	       len >= (ssize_t)(fetcher->offsets[fetcher->there] +
				pieces->piece[fetcher->there].len))
		fetcher->there++;
}

void attach_fetcher_begin_from(struct attach_fetcher *fetcher, const struct attach_reader *reader)
{
	begin(fetcher);
	fetcher->reader = reader;
}

static bool read_now(struct attach_fetcher *fetcher, uint64_t address, void *ret_bytes, size_t len)
{
	const struct iovec local = { .iov_base = ret_bytes, .iov_len = len };
	const struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = len };
	struct failure why;

	if (fetcher->reader)
		return attach_read(fetcher->reader, remote_addr_make(address), ret_bytes, len,
				   &why) == 0;
	return process_vm_readv(fetcher->process->memory_id, &local, 1, &remote, 1, 0) ==
	       (ssize_t)len;
}

static bool piece_holds(const struct attach_fetcher *fetcher, uint32_t piece, uint64_t address,
			size_t len)
{
	uint64_t at;

	if (piece >= fetcher->there)
		return false;
	at = address - fetcher->pieces->piece[piece].start;
	return at < fetcher->pieces->piece[piece].len &&
	       len <= fetcher->pieces->piece[piece].len - at;
}

/* @return the bytes in a piece, or NULL. */
static const uint8_t *find_in_pieces(struct attach_fetcher *fetcher, uint64_t address, size_t len)
{
	uint32_t low = 0, high = fetcher->there;

	if (!piece_holds(fetcher, fetcher->last, address, len)) {
		while (low < high) {
			uint32_t middle = (low + high) / 2;

			if (fetcher->pieces->piece[middle].start <= address)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == 0 || !piece_holds(fetcher, low - 1, address, len))
			return NULL;
		fetcher->last = low - 1;
	}
	return fetcher->bytes + fetcher->offsets[fetcher->last] +
	       (address - fetcher->pieces->piece[fetcher->last].start);
}

/* What is near is most likely needed next. A page that cannot be read is tried again. */
static const uint8_t *find_in_pages(struct attach_fetcher *fetcher, uint64_t address, size_t len)
{
	uint64_t page = address & ~(uint64_t)(PAGE_BYTES - 1);
	size_t at = page / PAGE_BYTES & (PAGES - 1);

	if (fetcher->reader || address - page + len > PAGE_BYTES || page == 0)
		return NULL;
	if (fetcher->pages[at] != page) {
		fetcher->pages[at] = 0;
		if (!read_now(fetcher, page, fetcher->page_bytes[at], PAGE_BYTES))
			return NULL;
		fetcher->pages[at] = page;
	}
	return fetcher->page_bytes[at] + (address - page);
}

bool attach_fetch(struct attach_fetcher *fetcher, uint64_t address, void *ret_bytes, size_t len)
{
	const uint8_t *bytes = find_in_pieces(fetcher, address, len);

	if (!bytes)
		bytes = find_in_pages(fetcher, address, len);
	if (bytes)
		memcpy(ret_bytes, bytes, len);
	else if (!read_now(fetcher, address, ret_bytes, len))
		return false;
	if (len <= SHORT_BYTES && fetcher->read_count < READS_NOTED)
		fetcher->reads[fetcher->read_count++] =
			(struct noted_read){ .start = address, .len = (uint32_t)len };
	return true;
}

static int by_start(const void *left, const void *right)
{
	const struct noted_read *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/* The kernel spends most of its time on looking up pages, once for each piece. So reads on the same
 * page, or on adjacent ones, form one piece. */
static bool belongs_to(uint64_t end, const struct noted_read *next)
{
	return next->start <= end || next->start / PAGE_BYTES - (end - 1) / PAGE_BYTES <= 1;
}

void attach_fetcher_end(struct attach_fetcher *fetcher, struct attach_pieces *ret_pieces)
{
	const struct noted_read *reads = fetcher->reads;
	size_t all = 0, i = 0;

	fetcher->there = 0;
	ret_pieces->count = 0;
	qsort(fetcher->reads, fetcher->read_count, sizeof(fetcher->reads[0]), by_start);
	while (i < fetcher->read_count && ret_pieces->count < ATTACH_PIECES) {
		uint64_t start = reads[i].start, end = start + reads[i].len;

		for (i++; i < fetcher->read_count && belongs_to(end, &reads[i]); i++)
			if (reads[i].start + reads[i].len > end)
				end = reads[i].start + reads[i].len;
		if (end - start > ATTACH_PIECES_BYTES - all)
			continue; /* read by the page */
		all += end - start;
		ret_pieces->piece[ret_pieces->count].start = start;
		ret_pieces->piece[ret_pieces->count++].len = (uint32_t)(end - start);
	}
}
