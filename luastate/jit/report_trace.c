/* SPDX-License-Identifier: MIT */
/* Which traces does a live process have? A trace is one block of memory (trace.c). Until the block
 * is freed as a whole, nothing that matters here changes in it, except the exits' counters.
 *
 * Source: LuaJIT v2.1 src/lj_trace.c (lj_trace_alloc, trace_save, trace_stop), src/lj_record.c
 * (lj_record_setup: IR_BASE).
 */
#include "luastate/jit/jit_report_internal.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/function/proto.h"
#include "luastate/state/invariants.h"

enum {
	TRACES_MAX = 65536, /* TraceNo1 has 16 bits */
	/* A trace may be freed and replaced while it is read. */
	TRIES = 3,
	/* Exits to keep; 65,535 traces rarely have more than 10 each. */
	EXITS_MAX = 1 << 18,
};

/* ---- Copying ---------------------------------------------------------------------------- */

static int read_slot(const struct jit_report_build *build, uint64_t table, uint32_t number,
		     uint64_t *ret_trace)
{
	struct failure why;

	return state_read_ref(build->view.layout, build->reader,
			      table + (uint64_t)build->view.layout->ref_size * number, ret_trace,
			      &why);
}

static bool read_header(const struct jit_report_build *build, uint64_t trace, uint32_t number,
			uint8_t *ret_header)
{
	const struct luastate_layout *layout = build->view.layout;
	struct failure why;

	return state_read_object(layout, build->reader, trace, state_gct(layout->tag_trace),
				 ret_header, (size_t)layout->GCtrace_sizeof, &why) == 0 &&
	       state_trace_fits(layout, build->reader, ret_header, trace, number);
}

static bool read_rest(struct jit_report_build *build, struct jit_report_copy *copy)
{
	struct failure why;

	if (!trace_block_of(build->view.layout, copy->header, copy->address, &copy->block))
		return false;
	copy->bytes = trace_read_block(build->reader, &copy->block, &why);
	build->out_of_memory |= !copy->bytes && why.kind == FAILURE_NO_MEMORY;
	return copy->bytes != NULL;
}

/* Whether two headers are equal in the members that a trace never changes. */
static bool is_same(const struct luastate_layout *layout, const uint8_t *header, uint8_t *after)
{
	uint8_t before[STATE_OBJECT_MAX];

	memcpy(before, header, (size_t)layout->GCtrace_sizeof);
	trace_clear_volatile(layout, before);
	trace_clear_volatile(layout, after);
	return memcmp(before, after, (size_t)layout->GCtrace_sizeof) == 0;
}

/* @return whether the slot had the same trace before and after. */
static bool copy_once(struct jit_report_build *build, uint64_t table, uint32_t number,
		      struct jit_report_copy *ret_copy)
{
	uint8_t after[STATE_OBJECT_MAX];
	uint64_t again;

	if (read_header(build, ret_copy->address, number, ret_copy->header) &&
	    read_rest(build, ret_copy) && read_slot(build, table, number, &again) == 0 &&
	    again == ret_copy->address && read_header(build, again, number, after) &&
	    is_same(build->view.layout, ret_copy->header, after))
		return true;
	free(ret_copy->bytes);
	ret_copy->bytes = NULL;
	return false;
}

/* ---- Traces ----------------------------------------------------------------------------- */

static enum luastate_trace_kind kind_of(const struct luastate_layout *layout,
					const struct luastate_trace *trace, uint32_t startins)
{
	int32_t op = (int32_t)(state_instruction(layout, startins) & 0xff);

	if (trace->root)
		return LUASTATE_TRACE_SIDE;
	if (op == BC_FORL || op == BC_ITERL || op == BC_LOOP || op == BC_ITERN)
		return LUASTATE_TRACE_LOOP;
	if (op == BC_CALLM || op == BC_CALL || op == BC_ITERC)
		return LUASTATE_TRACE_STITCHED;
	if (op >= BC_RET && op <= BC_RET1)
		return LUASTATE_TRACE_RETURN;
	return op >= layout->BC_FUNCF ? LUASTATE_TRACE_FUNCTION : LUASTATE_TRACE_OTHER;
}

/* Operands of a trace's first instruction, IR_BASE: a side trace has its parent and the parent's
 * exit there, a stitched trace has the previous trace as the second operand. */
static void read_parent(const struct jit_report_copy *copy, struct luastate_trace *trace)
{
	const uint8_t *base = trace_instruction(&copy->block, copy->bytes, TRACE_REF_BASE);

	if (!base || base[5] != TRACE_IR_BASE)
		return;
	if (trace->kind == LUASTATE_TRACE_SIDE) {
		trace->parent = jit_report_u16(base, 0);
		trace->exit = jit_report_u16(base, 2);
	} else if (trace->kind == LUASTATE_TRACE_STITCHED) {
		trace->parent = jit_report_u16(base, 2);
	}
}

static void read_members(const struct luastate_layout *layout, const struct jit_report_copy *copy,
			 struct luastate_trace *trace)
{
	const uint8_t *header = copy->header;

	trace->address = copy->address;
	trace->linktype = header[layout->GCtrace_linktype];
	trace->link = jit_report_u16(header, layout->GCtrace_link);
	trace->root = jit_report_u16(header, layout->GCtrace_root);
	trace->side_traces = jit_report_u16(header, layout->GCtrace_nchild);
	trace->mcode = state_u64(header, layout->GCtrace_mcode);
	trace->mcode_bytes = state_u32(header, layout->GCtrace_szmcode);
	trace->loop_offset = state_u32(header, layout->GCtrace_mcloop);
	/* The first instruction, IR_BASE, is not counted. */
	trace->instructions = copy->block.nins - TRACE_REF_BASE - 1;
	trace->constants = TRACE_REF_BASE - copy->block.nk;
	trace->kind = kind_of(layout, trace, state_u32(header, layout->GCtrace_startins));
	read_parent(copy, trace);
}

static bool add_functions(struct jit_report_probe *probe)
{
	struct jit_report_build *build = probe->build;
	struct luastate_jit_report *out = build->out;

	/* The first function is the one in which the trace begins. */
	for (size_t i = 1; i < probe->count; i++) {
		uint32_t function = jit_report_function(build, probe->candidates[i].proto);

		if (function == LUASTATE_NO_FUNCTION ||
		    !jit_report_has_room(build, ARRAY_RESERVE(out->trace_functions,
							      build->trace_function_room,
							      out->trace_function_count + 1)))
			return false;
		out->trace_functions[out->trace_function_count++] =
			(struct luastate_trace_function){ function, probe->candidates[i].inlined };
	}
	return true;
}

/* @return false to leave the trace out: its function is gone, or memory is short. */
static bool examine(struct jit_report_probe *probe, struct luastate_trace *trace)
{
	struct jit_report_build *build = probe->build;
	const struct luastate_layout *layout = build->view.layout;
	const uint8_t *header = probe->copy->header;
	struct state_proto *start =
		jit_report_proto(build, state_ref(layout, header, layout->GCtrace_startpt));
	struct failure why;

	if (!start)
		return false;
	build->view.state->trace_work = 0; /* the report's own time limit is enough */
	if (trace_decode_frames(&probe->source, &probe->trace, &why) != 0) {
		build->out_of_memory |= why.kind == FAILURE_NO_MEMORY;
		return false;
	}
	read_members(layout, probe->copy, trace);
	trace->start = jit_report_location(build, start,
					   state_ref(layout, header, layout->GCtrace_startpc));
	trace->first_exit = build->out->exit_count;
	trace->first_function = build->out->trace_function_count;
	jit_report_add_candidate(probe, start, true);
	jit_report_add_constants(probe);
	for (uint32_t i = 0; i < probe->copy->block.nsnap && !jit_report_is_late(build); i++)
		if (!jit_report_add_snapshot(probe, i))
			return false;
	if (!add_functions(probe))
		return false;
	trace->exit_count = build->out->exit_count - trace->first_exit;
	trace->function_count = build->out->trace_function_count - trace->first_function;
	return true;
}

/* A side trace may need functions of its parents; they are among all prototypes. */
static uint64_t find_on_heap(void *context, uint64_t pc)
{
	const struct state_proto *proto = jit_report_proto_at(context, pc);

	return proto ? proto->address : 0;
}

static bool add_trace(struct jit_report_build *build, const struct jit_report_copy *copy,
		      uint32_t number)
{
	struct luastate_jit_report *out = build->out;
	struct luastate_trace trace = { .number = number };
	struct jit_report_probe *probe;
	bool good;

	if (!jit_report_has_room(
		    build, ARRAY_RESERVE(out->traces, build->trace_room, out->trace_count + 1)))
		return false;
	probe = calloc(1, sizeof(*probe));
	if (!probe) {
		build->out_of_memory = true;
		return false;
	}
	probe->build = build;
	probe->copy = copy;
	probe->source = (struct trace_source){ .view = build->view,
					       .header = copy->header,
					       .bytes = copy->bytes,
					       .block = copy->block,
					       .find_holder = find_on_heap,
					       .context = build };
	probe->trace.address = copy->address;
	good = examine(probe, &trace);
	trace_deinit(&probe->trace);
	free(probe);
	if (!good)
		return false;
	out->traces[out->trace_count++] = trace;
	out->mcode_bytes += trace.mcode_bytes;
	return true;
}

/* Read the trace with a number, if there is one: a finished trace, or the one being recorded. */
static void read_trace(struct jit_report_build *build, uint64_t table, uint32_t number)
{
	uint64_t end = build->view.G + (uint64_t)build->view.layout->global_State_to_dispatch;
	struct jit_report_copy copy = { 0 };
	bool done = false;

	for (unsigned tries = 0; tries < TRIES && !done; tries++) {
		if (read_slot(build, table, number, &copy.address) != 0 || copy.address == 0)
			return;
		if (copy.address >= build->view.G && copy.address < end) {
			build->out->recording = number;
			return;
		}
		done = copy_once(build, table, number, &copy);
	}
	if (!done || !add_trace(build, &copy, number))
		build->out->changed++;
	free(copy.bytes);
}

/* Note on exits which side trace begins there; only the side traces have this information. */
static void link_exits(struct jit_report_build *build)
{
	struct luastate_jit_report *out = build->out;
	uint32_t *locations = calloc(TRACES_MAX, sizeof(*locations)); /* index + 1, by number */

	build->out_of_memory |= !locations;
	for (size_t i = 0; locations && i < out->trace_count; i++)
		locations[out->traces[i].number] = (uint32_t)i + 1;
	for (size_t i = 0; locations && i < out->trace_count; i++) {
		const struct luastate_trace *side = &out->traces[i], *parent;

		if (side->kind != LUASTATE_TRACE_SIDE || !locations[side->parent])
			continue;
		parent = &out->traces[locations[side->parent] - 1];
		if (side->exit < parent->exit_count)
			out->exits[parent->first_exit + side->exit].trace = side->number;
	}
	free(locations);
}

static void read_all(struct jit_report_build *build)
{
	const struct luastate_layout *layout = build->view.layout;
	struct luastate_jit_report *out = build->out;
	struct failure why;
	uint64_t table;

	if (state_read(build->reader, build->J + (uint64_t)layout->jit_State_sizetrace, &out->slots,
		       4, &why) != 0 ||
	    state_read(build->reader, build->J + (uint64_t)layout->jit_State_trace, &table, 8,
		       &why) != 0 ||
	    !state_is_pointer(table))
		return;
	for (uint32_t i = 1; i < out->slots && i < TRACES_MAX; i++) {
		if (jit_report_is_late(build) || out->exit_count > EXITS_MAX) {
			out->traces_cut = true;
			return;
		}
		read_trace(build, table, i);
	}
}

void jit_report_read_traces(struct jit_report_build *build)
{
	read_all(build);
	link_exits(build);
}
