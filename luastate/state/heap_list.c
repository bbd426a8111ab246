/* SPDX-License-Identifier: MIT */
/* How are all objects of a VM listed?
 *
 * All objects except strings are on one list, newest first. The main coroutine is the oldest of
 * them; only userdata follow it. If the process runs, an object may be freed during the walk, and
 * then leads to whatever the allocator keeps there. A walk that reaches the main coroutine, over
 * objects of known types only, has seen all objects that existed before and still exist. Otherwise
 * the walk is repeated, and in the end the caller learns that the list was not walked to its end.
 *
 * Objects are close to each other, so whole pages of a running process are read, and kept for a
 * while.
 */
#include "luastate/state/heap_list.h"

#include <stdlib.h>

enum {
	PAGE_BYTES = 4096,
	PAGES = 4096, /* 16 MiB; a power of two */
	WALKS = 3,
	/* Some GiB of small objects. */
	OBJECTS_MAX = 50 * 1000 * 1000,
	ASK_OBJECTS = 1024,
	/* Type numbers from upvalue to userdata. Source: lj_obj.h, LJ_TUPVAL, LJ_TUDATA. */
	GCT_FIRST = 5,
	GCT_LAST = 12,
};

/** A cached page; number 0: none. */
struct heap_page {
	uint64_t number;
	uint8_t *bytes;
};

/* ---- Pages ------------------------------------------------------------------------------ */

/* A page as it was a moment ago, or NULL. */
static const uint8_t *get_page(struct heap_list *list, uint64_t address)
{
	uint64_t number = address / PAGE_BYTES;
	struct heap_page *page = &list->pages[number & (PAGES - 1)];
	struct failure why;

	if (number && page->number == number)
		return page->bytes;
	page->number = 0;
	if (!page->bytes)
		page->bytes = malloc(PAGE_BYTES);
	if (!page->bytes ||
	    state_read(list->reader, number * PAGE_BYTES, page->bytes, PAGE_BYTES, &why) != 0)
		return NULL;
	page->number = number;
	return page->bytes;
}

static void forget_pages(struct heap_list *list)
{
	for (size_t i = 0; i < PAGES; i++)
		list->pages[i].number = 0;
}

static void free_pages(struct heap_list *list)
{
	for (size_t i = 0; i < PAGES; i++)
		free(list->pages[i].bytes);
	free(list->pages);
	list->pages = NULL;
}

bool heap_list_read(struct heap_list *list, uint64_t address, uint8_t *ret_bytes, size_t len)
{
	size_t offset = address % PAGE_BYTES;
	const uint8_t *page =
		list->pages && offset + len <= PAGE_BYTES ? get_page(list, address) : NULL;
	struct failure why;

	if (!page)
		return state_read(list->reader, address, ret_bytes, len, &why) == 0;
	memcpy(ret_bytes, page + offset, len);
	return true;
}

/* ---- Walk ------------------------------------------------------------------------------- */

/* @return whether the walk reached the main coroutine. */
static bool walk_once(struct heap_list *list, uint64_t main_thread)
{
	const struct luastate_layout *layout = list->layout;
	size_t len = (size_t)layout->GCobj_gct + 1;
	uint8_t header[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t object, marked = 0, steps = 0;

	if (layout->global_State_gc_root == LAYOUT_ABSENT ||
	    state_read_ref(layout, list->reader, list->G + (uint64_t)layout->global_State_gc_root,
			   &object, &why) != 0)
		return false;
	while (object != main_thread) {
		if (++list->objects > OBJECTS_MAX ||
		    (list->objects % ASK_OBJECTS == 0 && list->is_over(list->context)) ||
		    !state_is_aligned(object) || !heap_list_read(list, object, header, len) ||
		    header[layout->GCobj_gct] < GCT_FIRST || header[layout->GCobj_gct] > GCT_LAST ||
		    !list->visit(list->context, object, header))
			return false;
		/* Freed memory may form a circle. The walk then meets its mark again, because the
		 * distance between marks doubles (Brent's algorithm). */
		if ((steps & (steps - 1)) == 0)
			marked = object;
		steps++;
		object = state_ref(layout, header, 0);
		if (object == marked)
			return false;
	}
	return true;
}

bool heap_list_walk(struct heap_list *list)
{
	uint64_t main_thread = list->G - (uint64_t)list->layout->lua_State_sizeof;
	bool whole = false;

	list->objects = 0;
	if (list->is_still)
		return walk_once(list, main_thread);
	list->pages = calloc(PAGES, sizeof(*list->pages));
	for (unsigned i = 0; list->pages && i < WALKS && !whole && !list->is_over(list->context);
	     i++) {
		forget_pages(list);
		whole = walk_once(list, main_thread);
	}
	if (list->pages)
		free_pages(list);
	return whole;
}
