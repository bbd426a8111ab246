/* SPDX-License-Identifier: MIT */
/*
 * The functions that a trace runs: those among its constants, and those of its snapshots' frames;
 * and its exits.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (SnapShot), src/lj_record.c (rec_call_specialize).
 */
#include "luastate/jit/jit_report_internal.h"

void catalogue_add_candidate(struct catalogue_look *look, struct state_proto *proto, bool inlined)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->candidates[i].proto == proto) {
			look->candidates[i].inlined |= inlined;
			return;
		}
	if (look->count < CATALOGUE_CANDIDATES)
		look->candidates[look->count++] = (struct catalogue_candidate){ proto, inlined };
}

static struct state_proto *lua_proto(struct catalogue_look *look, uint8_t kind, uint64_t address)
{
	return kind == LUASTATE_LUA && address ? catalogue_proto(look->build, address) : NULL;
}

/* Prototypes are constants of a trace only where it was specialised to them by a call. */
void catalogue_add_constants(struct catalogue_look *look)
{
	for (size_t i = 0; i < look->trace.own_count; i++) {
		const struct trace_function *function = &look->trace.functions[i];
		struct state_proto *proto = lua_proto(look, function->kind, function->address);

		if (proto)
			catalogue_add_candidate(look, proto, function->object == function->address);
	}
}

static void add_frames(struct catalogue_look *look, const struct trace_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->count; i++) {
		const struct trace_frame *frame = &look->trace.frames[snapshot->first + i];
		struct state_proto *proto = lua_proto(look, frame->kind, frame->function);

		if (proto)
			catalogue_add_candidate(look, proto, true);
	}
}

static bool add_exit(struct catalogue_build *build, struct luastate_place place, uint8_t count)
{
	struct luastate_catalogue *out = build->out;
	struct luastate_trace_exit *exits = catalogue_room(build, out->exits, out->exit_count,
							   &build->exit_room, sizeof(*exits));

	if (!exits)
		return false;
	out->exits = exits;
	exits[out->exit_count++] = (struct luastate_trace_exit){ .place = place, .count = count };
	return true;
}

bool catalogue_add_snapshot(struct catalogue_look *look, uint32_t index)
{
	const struct trace_source *source = &look->source;
	uint64_t pc = trace_position_of(source, index);
	uint64_t holder = pc ? trace_find_holder(source, &look->trace, pc) : 0;
	struct state_proto *proto = lua_proto(look, LUASTATE_LUA, holder);

	if (proto)
		catalogue_add_candidate(look, proto, true);
	add_frames(look, &look->trace.snapshots[index]);
	return add_exit(look->build, catalogue_place(look->build, proto, pc),
			trace_snapshot_bytes(source, index)[source->vm->layout->SnapShot_count]);
}
