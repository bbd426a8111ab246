/* SPDX-License-Identifier: MIT */
/* Which functions does a trace run, and where are its exits? Functions are found among its
 * constants, and in its snapshots' frames.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (SnapShot), src/lj_record.c (rec_call_specialize).
 */
#include "luastate/jit/jit_report_internal.h"

#include "attach/array.h"
#include "luastate/function/proto.h"

void jit_report_add_candidate(struct jit_report_probe *probe, struct state_proto *proto,
			      bool inlined)
{
	for (size_t i = 0; i < probe->count; i++)
		if (probe->candidates[i].proto == proto) {
			probe->candidates[i].inlined |= inlined;
			return;
		}
	if (probe->count < JIT_REPORT_CANDIDATES)
		probe->candidates[probe->count++] = (struct jit_report_candidate){ proto, inlined };
}

static struct state_proto *lua_proto(struct jit_report_probe *probe, uint8_t kind, uint64_t address)
{
	return kind == LUASTATE_LUA && address ? jit_report_proto(probe->build, address) : NULL;
}

/* A prototype is a trace's constant only if a call specialised the trace to it. */
void jit_report_add_constants(struct jit_report_probe *probe)
{
	for (size_t i = 0; i < probe->trace.own_count; i++) {
		const struct trace_function *function = &probe->trace.functions[i];
		struct state_proto *proto = lua_proto(probe, function->kind, function->address);

		if (proto)
			jit_report_add_candidate(probe, proto,
						 function->object == function->address);
	}
}

static void add_frames(struct jit_report_probe *probe, const struct trace_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->count; i++) {
		const struct trace_frame *frame = &probe->trace.frames[snapshot->first + i];
		struct state_proto *proto = lua_proto(probe, frame->kind, frame->function);

		if (proto)
			jit_report_add_candidate(probe, proto, true);
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

bool jit_report_add_snapshot(struct jit_report_probe *probe, uint32_t index)
{
	const struct trace_source *source = &probe->source;
	uint64_t pc = trace_position_of(source, index);
	uint64_t holder = pc ? trace_find_holder(source, &probe->trace, pc) : 0;
	struct state_proto *proto = lua_proto(probe, LUASTATE_LUA, holder);

	if (proto)
		jit_report_add_candidate(probe, proto, true);
	add_frames(probe, &probe->trace.snapshots[index]);
	return add_exit(probe->build, jit_report_location(probe->build, proto, pc),
			trace_snapshot_bytes(source, index)[source->view.layout->SnapShot_count]);
}
