/* SPDX-License-Identifier: MIT */
/* Which prototypes does a VM have, and which of them are not compiled?
 *
 * Source: LuaJIT v2.1 src/lj_trace.c (penalty_pc, blacklist_pc, trace_start: PROTO_ILOOP),
 * src/lj_obj.h.
 */
#include "luastate/jit/jit_report_internal.h"

#include <stdlib.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "luastate/function/proto.h"
#include "luastate/state/heap_list.h"

enum {
	/* Time limit of all walks along the list of objects. */
	WALK_NS = 2000 * 1000 * 1000,
	SPANS_MAX = 1 << 20,
	UNCOMPILED_MAX = 1 << 16,
};

/** A walk along the list of objects. */
struct heap_walk {
	struct jit_report_build *build;
	struct heap_list list;
	uint64_t end_ns;
};

/* ---- Walk ------------------------------------------------------------------------------- */

static bool note_object(void *context, uint64_t address, const uint8_t *start)
{
	struct heap_walk *walk = context;
	struct jit_report_build *build = walk->build;
	const struct luastate_layout *layout = build->view.layout;
	uint8_t header[STATE_OBJECT_MAX];
	uint32_t sizebc;

	if (start[layout->GCobj_gct] != state_gct(layout->tag_proto) ||
	    build->span_count == SPANS_MAX ||
	    !heap_list_read(&walk->list, address, header, (size_t)layout->GCproto_sizeof))
		return true;
	sizebc = state_u32(header, layout->GCproto_sizebc);
	if (sizebc == 0 || sizebc > STATE_BYTECODE_MAX)
		return true;
	if (!jit_report_has_room(
		    build, ARRAY_RESERVE(build->spans, build->span_room, build->span_count + 1)))
		return true;
	build->spans[build->span_count++] =
		(struct jit_report_span){ address + (uint64_t)layout->GCproto_sizeof, sizebc,
					  header[layout->GCproto_flags] };
	return true;
}

static bool is_over(void *context)
{
	const struct heap_walk *walk = context;

	return walk->build->out_of_memory || clock_now_ns() >= walk->end_ns;
}

/* Several walks may find the same prototype, so duplicates are removed. */
static void sort_spans(struct jit_report_build *build)
{
	size_t kept = 0;

	if (build->span_count)
		qsort(build->spans, build->span_count, sizeof(*build->spans), array_by_first_u64);
	for (size_t i = 0; i < build->span_count; i++)
		if (kept == 0 || build->spans[kept - 1].start != build->spans[i].start)
			build->spans[kept++] = build->spans[i];
	build->span_count = kept;
}

void jit_report_walk_heap(struct jit_report_build *build)
{
	struct heap_walk walk = { .build = build, .end_ns = clock_now_ns() + WALK_NS };
	bool whole;

	walk.list = (struct heap_list){ .layout = build->view.layout,
					.reader = build->reader,
					.G = build->view.G,
					.is_over = is_over,
					.visit = note_object,
					.context = &walk };
	whole = heap_list_walk(&walk.list);
	build->out->heap_cut = !whole || build->span_count == SPANS_MAX;
	build->out->objects = walk.list.objects;
	sort_spans(build);
}

/* ---- What is not compiled --------------------------------------------------------------- */

static bool add_loop(struct jit_report_build *build, uint32_t line)
{
	struct luastate_jit_report *out = build->out;

	if (!jit_report_has_room(build,
				 ARRAY_RESERVE(out->loops, build->loop_room, out->loop_count + 1)))
		return false;
	out->loops[out->loop_count++] = line;
	return true;
}

/* List the instructions that the compiler patched to stop counting them. */
static void list_patched(struct jit_report_build *build, const struct state_proto *proto,
			 struct luastate_uncompiled *item)
{
	const struct luastate_layout *layout = build->view.layout;
	struct failure why;
	uint32_t ins;

	for (uint32_t i = 0; i < proto->sizebc && !jit_report_is_late(build); i++) {
		uint64_t pc = proto->bytecode + 4 * (uint64_t)i;
		int32_t op;

		if (state_proto_instruction(proto, build->reader, pc, &ins, &why) != 0)
			return;
		op = (int32_t)(ins & 0xff);
		if (i == 0)
			item->is_whole = op == layout->BC_FUNCF + JIT_REPORT_IFUNCF ||
					 op == layout->BC_FUNCF + JIT_REPORT_IFUNCV;
		else if ((op == BC_IFORL || op == BC_IITERL || op == BC_ILOOP) &&
			 add_loop(build, state_proto_line(proto, build->reader, pc)))
			item->loop_count++;
	}
}

static void add_uncompiled(struct jit_report_build *build, const struct jit_report_span *span)
{
	struct luastate_jit_report *out = build->out;
	struct luastate_uncompiled item = { .first_loop = out->loop_count };
	const struct state_proto *proto =
		jit_report_proto(build, span->start - (uint64_t)build->view.layout->GCproto_sizeof);

	if (!proto)
		return; /* collected since the walk */
	item.why = span->flags & STATE_PROTO_NOJIT ? LUASTATE_JIT_OFF : LUASTATE_BLACKLISTED;
	item.location = jit_report_location(build, proto, proto->bytecode);
	list_patched(build, proto, &item);
	if (jit_report_has_room(build, ARRAY_RESERVE(out->uncompiled, build->uncompiled_room,
						     out->uncompiled_count + 1)))
		out->uncompiled[out->uncompiled_count++] = item;
}

void jit_report_list_uncompiled(struct jit_report_build *build)
{
	for (size_t i = 0; i < build->span_count && !build->out_of_memory; i++) {
		if (!(build->spans[i].flags & (STATE_PROTO_NOJIT | STATE_PROTO_ILOOP)))
			continue;
		if (jit_report_is_late(build) || build->out->uncompiled_count == UNCOMPILED_MAX) {
			build->out->heap_cut = true;
			return;
		}
		add_uncompiled(build, &build->spans[i]);
	}
}
