/* SPDX-License-Identifier: MIT */
/* How is memory read without paging it in? A search for names may read a large part of a heap. If
 * much of it is swapped out, reads would bring it in, and push out more of the process.
 *
 * The owner of the state reports which pages are present, for many at once, because each query
 * costs some microseconds. Answers are kept for the rest of a sample, and those that a page is
 * present for a while: few pages are swapped out in that time.
 */
#include "luastate/state/present.h"

#include <stdlib.h>

#include "attach/clock.h"
#include "attach/freeze.h"

enum {
	KEPT_NS = 250 * 1000 * 1000,
	WINDOW_PAGES = 512, /* 2 MiB */
	WINDOW_BYTES = WINDOW_PAGES * ATTACH_PAGE_BYTES,
	WINDOWS = 4096, /* 8 GiB; a power of two */
};

/** The present pages of a window. */
struct window {
	uint64_t number;
	unsigned serial; /* sample of the answer; 0: never asked */
	uint64_t end_ns; /* until then pages that were present count as present */
	uint8_t bits[WINDOW_PAGES / 8];
};

void present_free(struct luastate *state)
{
	free(state->windows);
	state->windows = NULL;
}

static void ask(const struct luastate *state, struct window *window, uint64_t number)
{
	uint8_t pages[WINDOW_PAGES] = { 0 };
	bool known = state->pages(state->pages_context, number * WINDOW_BYTES,
				  (number + 1) * WINDOW_BYTES, pages);

	window->number = number;
	window->serial = state->serial;
	window->end_ns = clock_now_ns() + KEPT_NS;
	memset(window->bits, known ? 0 : 0xff, sizeof(window->bits));
	for (unsigned i = 0; known && i < WINDOW_PAGES; i++)
		window->bits[i / 8] |= (uint8_t)(!!pages[i] << i % 8);
}

static bool has_page(const struct window *window, unsigned page)
{
	return window->bits[page / 8] >> page % 8 & 1;
}

static bool is_present(const struct luastate *state, uint64_t address)
{
	uint64_t number = address / WINDOW_BYTES;
	unsigned page = (unsigned)(address % WINDOW_BYTES / ATTACH_PAGE_BYTES);
	struct window *window = &state->windows[number & (WINDOWS - 1)];

	if (window->number != number ||
	    (window->serial != state->serial &&
	     (!has_page(window, page) || clock_now_ns() >= window->end_ns)))
		ask(state, window, number);
	return has_page(window, page);
}

static int read_present(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	const struct present_reader *reader = self;
	uint64_t page = address.value / ATTACH_PAGE_BYTES;
	uint64_t last = len ? (address.value + (len - 1)) / ATTACH_PAGE_BYTES : page;

	for (; len && page <= last; page++)
		if (!is_present(reader->state, page * ATTACH_PAGE_BYTES))
			return failure_set(why, FAILURE_FAULT, 0, 0, page * ATTACH_PAGE_BYTES,
					   "read memory that is swapped out");
	return attach_read(reader->behind, address, ret_bytes, len, why);
}

const struct attach_reader *present_reader_init(struct present_reader *reader,
						struct luastate *state,
						const struct attach_reader *behind)
{
	if (state->pages && !state->windows)
		state->windows = calloc(WINDOWS, sizeof(*state->windows));
	if (!state->pages || !state->windows)
		return behind;
	*reader = (struct present_reader){ .reader = { .read = read_present, .self = reader },
					   .state = state,
					   .behind = behind };
	return &reader->reader;
}
