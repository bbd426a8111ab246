/* SPDX-License-Identifier: MIT */
/*
 * All prototypes of a VM, and those that are not compiled.
 *
 * All objects but strings are on one list, newest first, on which the main coroutine follows all of
 * them; behind it there are only userdata. The process runs on meanwhile: an object that is freed
 * under us leads to whatever the allocator keeps there. Whoever comes to the main coroutine over
 * objects of known types has seen all that were there before and still are; else another walk is
 * tried, and in the end the caller is told that the list was not walked to its end.
 *
 * Objects lie close to each other, so pages are read as a whole and kept for a while.
 *
 * Source: LuaJIT v2.1 src/lj_state.c (lua_newstate), src/lj_gc.c (lj_mem_newgco), src/lj_udata.c
 * (lj_udata_new); src/lj_trace.c (penalty_pc, blacklist_pc, trace_start: PROTO_ILOOP),
 * src/lj_obj.h.
 */
#include "luastate/catalogue.h"

#include <stdlib.h>

enum {
	PAGE_BYTES = 4096,
	PAGES = 4096, /* 16 MiB; a power of two */
	WALKS = 3,
	/* Some GiB of small objects; and no longer than this for all walks. */
	OBJECTS_MAX = 50 * 1000 * 1000,
	WALK_NS = 2000 * 1000 * 1000,
	CLOCK_OBJECTS = 1024,
	/* Upvalue to userdata. Source: lj_obj.h, LJ_TUPVAL, LJ_TUDATA. */
	GCT_FIRST = 5,
	GCT_LAST = 12,
	SPANS_MAX = 1 << 20,
	UNCOMPILED_MAX = 1 << 16,
};

/** A page that is kept; 0: none. */
struct heap_page {
	uint64_t number;
	uint8_t *bytes;
};

/** A walk along the list. */
struct heap_walk {
	struct catalogue_build *build;
	uint64_t end_ns, main_thread;
	struct heap_page *pages;
	uint64_t objects;
};

/* ---- Pages ------------------------------------------------------------------------------ */

/* A page as it was a moment ago, or NULL. */
static const uint8_t *get_page(struct heap_walk *walk, uint64_t address)
{
	uint64_t number = address / PAGE_BYTES;
	struct heap_page *page = &walk->pages[number & (PAGES - 1)];
	struct failure why;

	if (page->number == number)
		return page->bytes;
	page->number = 0;
	if (!page->bytes)
		page->bytes = malloc(PAGE_BYTES);
	if (!page->bytes || state_read(walk->build->reader, number * PAGE_BYTES, page->bytes,
				       PAGE_BYTES, &why) != 0)
		return NULL;
	page->number = number;
	return page->bytes;
}

static void forget_pages(struct heap_walk *walk)
{
	for (size_t i = 0; i < PAGES; i++)
		walk->pages[i].number = 0;
}

static void free_pages(struct heap_walk *walk)
{
	for (size_t i = 0; walk->pages && i < PAGES; i++)
		free(walk->pages[i].bytes);
	free(walk->pages);
}

static bool read_bytes(struct heap_walk *walk, uint64_t address, uint8_t *ret_bytes, size_t len)
{
	size_t offset = address % PAGE_BYTES;
	const uint8_t *page = offset + len <= PAGE_BYTES ? get_page(walk, address) : NULL;
	struct failure why;

	if (!page)
		return state_read(walk->build->reader, address, ret_bytes, len, &why) == 0;
	memcpy(ret_bytes, page + offset, len);
	return true;
}

/* ---- Walk ------------------------------------------------------------------------------- */

static void note_proto(struct heap_walk *walk, uint64_t address)
{
	struct catalogue_build *build = walk->build;
	const struct luastate_layout *layout = build->layout;
	uint8_t header[STATE_OBJECT_MAX];
	struct catalogue_span *spans;
	uint32_t sizebc;

	if (build->span_count == SPANS_MAX ||
	    !read_bytes(walk, address, header, (size_t)layout->GCproto_sizeof))
		return;
	sizebc = state_u32(header, layout->GCproto_sizebc);
	if (sizebc == 0 || sizebc > STATE_BYTECODE_MAX)
		return;
	spans = catalogue_room(build, build->spans, build->span_count, &build->span_room,
			       sizeof(*spans));
	if (!spans)
		return;
	build->spans = spans;
	spans[build->span_count++] =
		(struct catalogue_span){ address + (uint64_t)layout->GCproto_sizeof, sizebc,
					 header[layout->GCproto_flags] };
}

/* @return whether the walk came to the main coroutine. */
static bool walk_once(struct heap_walk *walk)
{
	struct catalogue_build *build = walk->build;
	const struct luastate_layout *layout = build->layout;
	size_t len = (size_t)layout->GCobj_gct + 1;
	uint8_t header[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t object, marked = 0, steps = 0;

	if (layout->global_State_gc_root == LAYOUT_ABSENT ||
	    state_read_ref(layout, build->reader, build->G + (uint64_t)layout->global_State_gc_root,
			   &object, &why) != 0)
		return false;
	while (object != walk->main_thread) {
		if (++walk->objects > OBJECTS_MAX ||
		    (walk->objects % CLOCK_OBJECTS == 0 && catalogue_now_ns() >= walk->end_ns) ||
		    !state_is_pointer(object) || object % 8 != 0 || build->out_of_memory ||
		    !read_bytes(walk, object, header, len) ||
		    header[layout->GCobj_gct] < GCT_FIRST || header[layout->GCobj_gct] > GCT_LAST)
			return false;
		if (header[layout->GCobj_gct] == state_gct(layout->tag_proto))
			note_proto(walk, object);
		/* Free memory may be a circle: who is in one comes back to a mark, as the way to
		 * the next one doubles each time (Brent). */
		if ((steps & (steps - 1)) == 0)
			marked = object;
		steps++;
		object = state_ref(layout, header, 0);
		if (object == marked)
			return false;
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct catalogue_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Several walks meet most prototypes several times. */
static void sort_spans(struct catalogue_build *build)
{
	size_t kept = 0;

	if (build->span_count)
		qsort(build->spans, build->span_count, sizeof(*build->spans), by_start);
	for (size_t i = 0; i < build->span_count; i++)
		if (kept == 0 || build->spans[kept - 1].start != build->spans[i].start)
			build->spans[kept++] = build->spans[i];
	build->span_count = kept;
}

void catalogue_walk_heap(struct catalogue_build *build)
{
	struct heap_walk walk = { .build = build,
				  .end_ns = catalogue_now_ns() + WALK_NS,
				  .main_thread =
					  build->G - (uint64_t)build->layout->lua_State_sizeof,
				  .pages = calloc(PAGES, sizeof(*walk.pages)) };
	bool whole = false;

	build->out_of_memory |= !walk.pages;
	for (unsigned i = 0; i < WALKS && !whole && !build->out_of_memory; i++) {
		forget_pages(&walk);
		whole = walk_once(&walk);
	}
	build->out->heap_cut = !whole || build->span_count == SPANS_MAX;
	build->out->objects = walk.objects;
	free_pages(&walk);
	sort_spans(build);
}

/* ---- What is not compiled --------------------------------------------------------------- */

static bool add_loop(struct catalogue_build *build, uint32_t line)
{
	struct luastate_catalogue *out = build->out;
	uint32_t *loops = catalogue_room(build, out->loops, out->loop_count, &build->loop_room,
					 sizeof(*loops));

	if (!loops)
		return false;
	out->loops = loops;
	loops[out->loop_count++] = line;
	return true;
}

/* The instructions that the compiler patched, so that they are not counted any more. */
static void list_patched(struct catalogue_build *build, const struct state_proto *proto,
			 struct luastate_uncompiled *item)
{
	const struct luastate_layout *layout = build->layout;
	struct failure why;
	uint32_t ins;

	for (uint32_t i = 0; i < proto->sizebc && !catalogue_is_late(build); i++) {
		uint64_t pc = proto->bytecode + 4 * (uint64_t)i;
		int32_t op;

		if (state_proto_instruction(proto, build->reader, pc, &ins, &why) != 0)
			return;
		op = (int32_t)(ins & 0xff);
		if (i == 0)
			item->is_whole = op == layout->BC_FUNCF + CATALOGUE_IFUNCF ||
					 op == layout->BC_FUNCF + CATALOGUE_IFUNCV;
		else if ((op == CATALOGUE_IFORL || op == CATALOGUE_IITERL ||
			  op == CATALOGUE_ILOOP) &&
			 add_loop(build, state_proto_line(proto, build->reader, pc)))
			item->loop_count++;
	}
}

static void add_uncompiled(struct catalogue_build *build, const struct catalogue_span *span)
{
	struct luastate_catalogue *out = build->out;
	struct luastate_uncompiled *items =
		catalogue_room(build, out->uncompiled, out->uncompiled_count,
			       &build->uncompiled_room, sizeof(*items));
	struct luastate_uncompiled item = { .first_loop = out->loop_count };
	const struct state_proto *proto =
		catalogue_proto(build, span->start - (uint64_t)build->layout->GCproto_sizeof);

	if (!items)
		return;
	out->uncompiled = items;
	if (!proto)
		return; /* collected meanwhile */
	item.why = span->flags & CATALOGUE_NOJIT ? LUASTATE_JIT_OFF : LUASTATE_BLACKLISTED;
	item.place = catalogue_place(build, proto, proto->bytecode);
	list_patched(build, proto, &item);
	items[out->uncompiled_count++] = item;
}

void catalogue_list_uncompiled(struct catalogue_build *build)
{
	for (size_t i = 0; i < build->span_count && !build->out_of_memory; i++) {
		if (!(build->spans[i].flags & (CATALOGUE_NOJIT | CATALOGUE_PATCHED)))
			continue;
		if (catalogue_is_late(build) || build->out->uncompiled_count == UNCOMPILED_MAX) {
			build->out->heap_cut = true;
			return;
		}
		add_uncompiled(build, &build->spans[i]);
	}
}
