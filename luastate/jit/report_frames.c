/* SPDX-License-Identifier: MIT */
/* Which functions does a trace run, and where are its exits? Functions are found among its
 * constants, and in its snapshots' frames.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (SnapShot), src/lj_record.c (rec_call_specialize).
 */
#include "luastate/jit/jit_report_internal.h"

#include "attach/array.h"
#include "luastate/function/proto.h"

void jit_report_add_candidate(struct jit_report_probe *look, struct state_proto *proto,
			      bool inlined)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->candidates[i].proto == proto) {
			look->candidates[i].inlined |= inlined;
			return;
		}
	if (look->count < JIT_REPORT_CANDIDATES)
		look->candidates[look->count++] = (struct jit_report_candidate){ proto, inlined };
}

static struct state_proto *lua_proto(struct jit_report_probe *look, uint8_t kind, uint64_t address)
{
	return kind == LUASTATE_LUA && address ? jit_report_proto(look->build, address) : NULL;
}

/* A prototype is a trace's constant only if a call specialised the trace to it. */
void jit_report_add_constants(struct jit_report_probe *look)
{
	for (size_t i = 0; i < look->trace.own_count; i++) {
		const struct trace_function *function = &look->trace.functions[i];
		struct state_proto *proto = lua_proto(look, function->kind, function->address);

		if (proto)
			jit_report_add_candidate(look, proto,
						 function->object == function->address);
	}
}

static void add_frames(struct jit_report_probe *look, const struct trace_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->count; i++) {
		const struct trace_frame *frame = &look->trace.frames[snapshot->first + i];
		struct state_proto *proto = lua_proto(look, frame->kind, frame->function);

		if (proto)
			jit_report_add_candidate(look, proto, true);
	}
}

static bool add_exit(struct jit_report_build *build, struct luastate_location location,
		     uint8_t count)
{
	struct luastate_jit_report *out = build->out;

	if (!jit_report_has_room(build,
				 ARRAY_RESERVE(out->exits, build->exit_room, out->exit_count + 1)))
		return false;
	out->exits[out->exit_count++] =
		(struct luastate_trace_exit){ .location = location, .count = count };
	return true;
}

bool jit_report_add_snapshot(struct jit_report_probe *look, uint32_t index)
{
	const struct trace_source *source = &look->source;
	uint64_t pc = trace_position_of(source, index);
	uint64_t holder = pc ? trace_find_holder(source, &look->trace, pc) : 0;
	struct state_proto *proto = lua_proto(look, LUASTATE_LUA, holder);

	if (proto)
		jit_report_add_candidate(look, proto, true);
	add_frames(look, &look->trace.snapshots[index]);
	return add_exit(look->build, jit_report_location(look->build, proto, pc),
			trace_snapshot_bytes(source, index)[source->view.layout->SnapShot_count]);
}
