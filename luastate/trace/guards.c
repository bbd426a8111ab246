/* SPDX-License-Identifier: MIT */
/*
 * From which offset in the machine code is each snapshot valid, and from which is its base not?
 *
 * Builds since March 2021 store the offset in the snapshot. In older builds, the guards show it.
 * Each guard is a branch to an exit stub, whose index is the number of the snapshot. If a side
 * trace begins at the exit, the guard is a branch to that trace. The code is in the order of the
 * snapshots. Before a trace's head there may be a branch to an exit of its parent.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (SnapShot.mcofs since a32aeadc, in units of MCode),
 * src/lj_target_x86.h, src/lj_target_arm64.h (exitstub_addr, exitstub_trace_addr), src/lj_asm_x86.h
 * (asm_guardcc, lj_asm_patchexit).
 */
#include "luastate/trace/trace.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/arch/arch.h"

enum {
	/* Maximum side traces of one trace whose headers are read. More are hardly worth the
	 * time. */
	SIDES_MAX = 1024,
	/* Bytes of machine code that one step searches, see trace_charge(). */
	CODE_BYTES = 512,
};

/** The possible targets of a trace's guards. */
struct targets {
	const struct trace_source *source;
	const struct trace *trace;
	struct state_stubs stubs;
	unsigned sides_left;
};

/* Find the exit that a branch leads to, by its stub, or by the side trace that begins there. */
static bool exit_of(struct targets *targets, uint64_t target, uint32_t *ret_exit)
{
	const struct trace_source *source = targets->source;
	const struct trace *trace = targets->trace;

	if (state_arch_exit_of(&targets->stubs, target, ret_exit))
		return true;
	if (trace_holds(trace, target) || !state_is_pointer(target) || !targets->sides_left)
		return false;
	targets->sides_left--;
	return trace_read_side(&source->view, trace_number_behind(&source->view, target), target,
			       (uint32_t)trace->key.number, ret_exit);
}

/* A snapshot begins after the last guard of the snapshots before it. The guards are found in the
 * order of their exits. */
static void locate_in(struct targets *targets, struct trace *trace, const uint8_t *code, size_t len)
{
	const struct state_view *view = &targets->source->view;
	uint32_t last = 0, number, offset = 0;
	size_t at = state_arch_head_end(view->layout, view->G, code, len, &number);

	while (at < len) {
		uint64_t target;
		uint32_t exit;
		size_t branch =
			state_arch_branch_at(code + at, len - at, trace->mcode + at, &target);

		if (branch == 0 || !exit_of(targets, target, &exit) || exit < last ||
		    exit >= trace->snapshot_count) {
			at += STATE_MCODE_UNIT;
			continue;
		}
		at += branch;
		last = exit;
		if (exit + 1 < trace->snapshot_count)
			trace->snapshots[exit + 1].offset = (uint32_t)at;
	}
	for (size_t i = 0; i < trace->snapshot_count; i++) {
		if (trace->snapshots[i].offset > offset)
			offset = trace->snapshots[i].offset;
		trace->snapshots[i].offset = offset;
	}
}

static bool locate_by_guards(const struct trace_source *source, struct trace *trace)
{
	struct targets targets = { .source = source, .trace = trace, .sides_left = SIDES_MAX };
	size_t len = trace->szmcode < TRACE_CODE_BYTES ? trace->szmcode : TRACE_CODE_BYTES;
	uint8_t *code = malloc(len);
	struct failure why;
	bool there =
		code && state_read(source->view.memory->any, trace->mcode, code, len, &why) == 0 &&
		state_arch_read_stubs(source->view.layout, source->view.memory->any, source->view.G,
				      trace->mcode, trace->szmcode, &targets.stubs);

	if (there)
		locate_in(&targets, trace, code, len);
	free(code);
	return there;
}

static void locate(const struct trace_source *source, struct trace *trace)
{
	const struct luastate_layout *layout = source->view.layout;
	uint32_t offset = 0;

	if (layout->SnapShot_mcofs == LAYOUT_ABSENT) {
		if (!locate_by_guards(source, trace))
			for (size_t i = 0; i < trace->snapshot_count; i++)
				trace->snapshots[i].count = 0;
		return;
	}
	for (size_t i = 0; i < trace->snapshot_count; i++) {
		const uint8_t *bytes = trace_snapshot_bytes(source, (uint32_t)i);
		uint32_t own =
			STATE_MCODE_UNIT * (state_u32(bytes, layout->SnapShot_mcofs) & 0xffff);

		offset = own > offset ? own : offset;
		trace->snapshots[i].offset = offset;
	}
}

/* The last snapshot that begins at or before an offset. */
static struct trace_snapshot *snapshot_at(const struct trace *trace, uint32_t offset)
{
	size_t end = ARRAY_SEARCH(trace->snapshot_count, i, trace->snapshots[i].offset <= offset);

	return end ? &trace->snapshots[end - 1] : NULL;
}

/* Note where the trace moves the base: at a return to a lower frame, and at its end if it
 * continues in another trace from a higher frame. */
static void note_moves(const struct trace_source *source, struct trace *trace)
{
	size_t len = trace->szmcode < TRACE_CODE_BYTES ? trace->szmcode : TRACE_CODE_BYTES;
	uint8_t *code = malloc(len);
	struct failure why;

	for (size_t i = 0; i < trace->snapshot_count; i++)
		trace->snapshots[i].moved = UINT32_MAX;
	if (!code || state_read(source->view.memory->any, trace->mcode, code, len, &why) != 0)
		len = 0;
	for (size_t at = 0; at < len; at += STATE_MCODE_UNIT) {
		size_t store = state_arch_base_store_at(source->view.layout, source->view.G,
							code + at, len - at);
		struct trace_snapshot *snapshot = store ? snapshot_at(trace, (uint32_t)at) : NULL;

		if (snapshot && snapshot->moved == UINT32_MAX)
			snapshot->moved = (uint32_t)(at + store);
	}
	free(code);
}

void trace_locate(const struct trace_source *source, struct trace *trace)
{
	size_t len = trace->szmcode < TRACE_CODE_BYTES ? trace->szmcode : TRACE_CODE_BYTES;

	trace_charge(source->view.state, len / CODE_BYTES);
	locate(source, trace);
	note_moves(source, trace);
}

const struct trace_snapshot *trace_snapshot_at(const struct trace *trace, uint64_t pc)
{
	const struct trace_snapshot *snapshot =
		trace_holds(trace, pc) ? snapshot_at(trace, (uint32_t)(pc - trace->mcode)) : NULL;

	return snapshot && snapshot->count ? snapshot : NULL;
}
