/* SPDX-License-Identifier: MIT */
/* How do we read whole pages, and note which? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/freeze.h"
#include "attach/hash.h"

enum {
	KEPT = 4096, /* pages, 16 MiB; a power of 2 */
};

/** A noted page. */
struct noted_page {
	uint64_t number;
	UT_hash_handle hh;
};

struct attach_pages {
	const struct attach_reader *behind;
	struct attach_reader reader;
	uint64_t kept[KEPT]; /* page number in each slot; 0: none */
	uint8_t *bytes;
	struct noted_page *noted; /* by number */
	size_t max;
	uint64_t *list;
};

/* @return false if there is no room. */
static bool note(struct attach_pages *pages, uint64_t number)
{
	struct noted_page *page;

	HASH_FIND(hh, pages->noted, &number, sizeof(number), page);
	if (page)
		return true;
	page = HASH_COUNT(pages->noted) < pages->max ? malloc(sizeof(*page)) : NULL;
	if (!page)
		return false;
	page->number = number;
	return HASH_KEEP(pages->noted, number, page);
}

bool attach_pages_note(struct attach_pages *pages, uint64_t start, uint64_t end)
{
	for (uint64_t at = start / ATTACH_PAGE_BYTES; at * ATTACH_PAGE_BYTES < end; at++)
		if (!note(pages, at))
			return false;
	return true;
}

/* @return the page's bytes; NULL if it cannot be read. */
static const uint8_t *get(struct attach_pages *pages, uint64_t number, struct failure *why)
{
	size_t location = (size_t)number & (KEPT - 1);
	uint8_t *bytes = pages->bytes + location * ATTACH_PAGE_BYTES;

	if (pages->kept[location] == number)
		return bytes;
	pages->kept[location] = 0;
	if (attach_read(pages->behind, remote_addr_make(number * ATTACH_PAGE_BYTES), bytes,
			ATTACH_PAGE_BYTES, why) != 0)
		return NULL;
	if (!note(pages, number)) {
		failure_set(why, FAILURE_LIMIT, 0, 0, number * ATTACH_PAGE_BYTES,
			    "read more pages");
		return NULL;
	}
	pages->kept[location] = number;
	return bytes;
}

static int read_pages(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	struct attach_pages *pages = self;
	uint8_t *to = ret_bytes;
	uint64_t at = address.value;

	while (len) {
		size_t offset = (size_t)(at % ATTACH_PAGE_BYTES), part = ATTACH_PAGE_BYTES - offset;
		const uint8_t *page =
			at < ATTACH_PAGE_BYTES ? NULL : get(pages, at / ATTACH_PAGE_BYTES, why);

		if (!page && (at < ATTACH_PAGE_BYTES || why->kind == FAILURE_FAULT))
			return failure_set(why, FAILURE_FAULT, 0, 0, at, "read memory");
		if (!page)
			return -1;
		part = part < len ? part : len;
		memcpy(to, page + offset, part);
		to += part;
		at += part;
		len -= part;
	}
	return 0;
}

struct attach_pages *attach_pages_create(const struct attach_reader *behind, size_t max_pages)
{
	struct attach_pages *pages = calloc(1, sizeof(*pages));

	if (!pages)
		return NULL;
	pages->behind = behind;
	pages->max = max_pages;
	pages->reader = (struct attach_reader){ .read = read_pages, .self = pages };
	pages->bytes = malloc((size_t)KEPT * ATTACH_PAGE_BYTES);
	if (!pages->bytes) {
		free(pages);
		return NULL;
	}
	return pages;
}

void attach_pages_destroy(struct attach_pages *pages)
{
	struct noted_page *page, *next;

	if (!pages)
		return;
	HASH_ITER(hh, pages->noted, page, next)
	{
		HASH_DEL(pages->noted, page);
		free(page);
	}
	free(pages->bytes);
	free(pages->list);
	free(pages);
}

const struct attach_reader *attach_pages_reader(struct attach_pages *pages)
{
	return &pages->reader;
}

void attach_pages_forget(struct attach_pages *pages)
{
	memset(pages->kept, 0, sizeof(pages->kept));
}

const uint64_t *attach_pages_list(struct attach_pages *pages, size_t *ret_count)
{
	size_t count = 0;

	*ret_count = 0;
	free(pages->list);
	pages->list = calloc(HASH_COUNT(pages->noted) + 1, sizeof(*pages->list));
	if (!pages->list)
		return NULL;
	for (const struct noted_page *page = pages->noted; page; page = page->hh.next)
		pages->list[count++] = page->number;
	if (count)
		qsort(pages->list, count, sizeof(*pages->list), array_by_first_u64);
	*ret_count = count;
	return pages->list;
}
