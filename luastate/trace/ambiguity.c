/* SPDX-License-Identifier: MIT */
/*
 * How certain are a snapshot's frames up to the next snapshot?
 *
 * Each snapshot is valid at a guard. Between two guards the code may call and return. Frames that
 * are in both snapshots are valid in between, except if a function without a guard was called
 * meanwhile. Neither snapshot shows that function.
 *
 * Source: LuaJIT v2.1 src/lj_snap.c, src/lj_record.c (lj_record_call).
 */
#include "luastate/trace/trace.h"

#include "luastate/function/proto.h"

enum {
	/* Bytes of a loop's bytecode that one step searches, see trace_charge(). */
	LOOP_BYTES = 2048,
};

static const struct trace_frame *frame_from_root(const struct trace *trace,
						 const struct trace_snapshot *snapshot, unsigned n)
{
	return &trace->frames[snapshot->first + snapshot->count - 1 - n];
}

/* Count the frames that are valid from one snapshot to the next: the common ones, from the
 * lowest on. A call is the same as long as its caller's position is. */
static void compare(const struct trace *trace, struct trace_snapshot *snapshot,
		    const struct trace_snapshot *next)
{
	unsigned both = snapshot->count < next->count ? snapshot->count : next->count;

	snapshot->sure = 0;
	for (unsigned n = 0; n < both; n++) {
		const struct trace_frame *one = frame_from_root(trace, snapshot, n);
		const struct trace_frame *other = frame_from_root(trace, next, n);

		bool leaf = n + 1 == snapshot->count && n + 1 == next->count;

		if (one->function != other->function || (one->pc != other->pc && !leaf))
			break;
		snapshot->sure++;
	}
	snapshot->exact = snapshot->sure == snapshot->count && snapshot->count == next->count;
}

/* If only the guards give the offsets, code before a snapshot's first guard may belong to the
 * previous snapshot. */
static void doubt(const struct trace *trace, struct trace_snapshot *snapshot)
{
	struct trace_snapshot before = *snapshot, after = *snapshot;

	if (snapshot == trace->snapshots)
		return;
	compare(trace, &before, snapshot - 1);
	after.sure = before.sure < snapshot->sure ? before.sure : snapshot->sure;
	after.exact = before.exact && snapshot->exact;
	*snapshot = after;
}

static bool is_shown(const struct trace *trace, uint64_t proto)
{
	if (proto == trace->startpt)
		return true;
	for (size_t i = 0; i < trace->frame_count; i++)
		if (trace->frames[i].function == proto)
			return true;
	return false;
}

/* Whether the trace is specialised to a Lua function that is in none of its snapshots. The
 * function may be inlined without any guard, and run anywhere. */
static bool hides_functions(const struct trace *trace)
{
	for (size_t i = 0; i < trace->own_count; i++)
		if (trace->functions[i].kind == LUASTATE_LUA &&
		    !is_shown(trace, trace->functions[i].address))
			return true;
	return false;
}

/* Whether the trace knows a Lua function that is not in the snapshot's chain. */
static bool knows_others(const struct trace *trace, const struct trace_snapshot *snapshot)
{
	for (size_t i = 0; i < trace->own_count; i++) {
		bool found = trace->functions[i].kind != LUASTATE_LUA;

		for (unsigned k = 0; k < snapshot->count && !found; k++)
			found = trace->frames[snapshot->first + k].function ==
				trace->functions[i].address;
		if (!found)
			return true;
	}
	return false;
}

/** A function's bytecode. */
struct code {
	struct luastate *state;
	const struct state_proto *proto;
	const struct attach_reader *reader;
	bool metamethods; /* the trace has inlined metamethods */
};

static bool is_call(const struct code *code, int32_t op)
{
	if ((op >= BC_CALLM && op <= BC_ITERN) || op == STATE_OPCODE_UNKNOWN)
		return true;
	return code->metamethods && (op <= BC_ISNEV || (op >= BC_UNM && op <= BC_CAT) ||
				     (op >= BC_GGET && op <= BC_TSETR));
}

/*
 * Whether there is a call in [from, to).
 * @param ret_back Target of the first jump backwards, at which the search ends; NULL: ignore jumps.
 */
static bool has_call(const struct code *code, uint64_t from, uint64_t to, uint64_t *ret_back)
{
	struct failure why;
	uint32_t ins;

	for (uint64_t pc = from; pc < to; pc += 4) {
		int32_t op;

		if (state_proto_instruction(code->proto, code->reader, pc, &ins, &why) != 0)
			return true;
		op = (int32_t)(ins & 0xff);
		if (is_call(code, op))
			return true;
		if (ret_back && op >= BC_FORL && op <= BC_JMP && ins >> 16 < BCBIAS_J) {
			*ret_back = pc + 4 - 4 * (uint64_t)(BCBIAS_J - (ins >> 16));
			return false;
		}
	}
	return false;
}

/* ---- Loops ------------------------------------------------------------------------------ */

/** A loop's first and last instruction. */
struct loop {
	uint64_t start, end;
};

/* Find the loop that the instruction at @p pc shows: the start of a numeric loop, the jump into
 * an iterator loop, or the jump back. The compiler changes none of these. */
static bool loop_at(const struct code *code, uint64_t pc, struct loop *ret_loop)
{
	uint32_t ins, there;
	int32_t op;
	uint64_t target;
	struct failure why;

	if (state_proto_instruction(code->proto, code->reader, pc, &ins, &why) != 0)
		return false;
	op = (int32_t)(ins & 0xff);
	target = trace_jump_target(pc, ins);
	if (op == BC_FORI || op == BC_JFORI) {
		*ret_loop = (struct loop){ pc + 4, target - 4 };
		return target > pc + 4;
	}
	if (op == BC_JMP && target <= pc) {
		*ret_loop = (struct loop){ target, pc };
		return true;
	}
	if ((op != BC_JMP && op != BC_ISNEXT) ||
	    state_proto_instruction(code->proto, code->reader, target, &there, &why) != 0 ||
	    ((there & 0xff) != BC_ITERC && (there & 0xff) != BC_ITERN))
		return false;
	*ret_loop = (struct loop){ pc + 4, target + 4 };
	return true;
}

/* Find the loop around @pc that the instruction at @at shows. The search of the loop is charged in
 * advance: forged bytecode may show a loop at each of its instructions. */
static bool loop_around(const struct code *code, uint64_t at, uint64_t pc, struct loop *ret_loop)
{
	return loop_at(code, at, ret_loop) && pc >= ret_loop->start && pc <= ret_loop->end &&
	       trace_charge(code->state, (ret_loop->end - ret_loop->start) / LOOP_BYTES);
}

/* Read an instruction as it is now. */
static bool read_live(const struct code *code, uint64_t pc, uint32_t *ret_ins)
{
	struct failure why;

	if (state_read(code->reader, pc, ret_ins, 4, &why) != 0)
		return false;
	*ret_ins = state_instruction(code->proto->layout, *ret_ins);
	return true;
}

/* Whether the root trace @p number begins and ends at the loop. The instruction that shows this
 * may be newer than the first read of the function. */
static bool is_of_trace(const struct code *code, const struct loop *loop, uint32_t number)
{
	uint32_t ins, found;
	struct failure why;

	if (!read_live(code, loop->end, &ins))
		return false;
	if ((ins & 0xff) == BC_JFORL || (ins & 0xff) == BC_JITERL)
		return ins >> 16 == number;
	/* The first mark is this loop's own; inner loops' marks follow. */
	for (uint64_t pc = loop->start; pc < loop->end; pc += 4) {
		if (state_proto_instruction(code->proto, code->reader, pc, &ins, &why) != 0)
			return false;
		if ((ins & 0xff) >= BC_LOOP && (ins & 0xff) <= BC_JLOOP)
			return read_live(code, pc, &found) && (found & 0xff) == BC_JLOOP &&
			       found >> 16 == number;
	}
	return false;
}

/*
 * Whether the trace may reach the instruction at @p pc again without a sign of it: in a loop that
 * it has unrolled. This excludes the loop of its root trace, which has a snapshot or ends the
 * trace, and the loops around that one.
 * @param with_call Only consider loops with a call.
 */
static bool may_repeat(const struct code *code, uint64_t pc, uint32_t root, bool with_call)
{
	const struct state_proto *proto = code->proto;
	uint64_t end = proto->bytecode + 4 * (uint64_t)proto->sizebc;
	struct loop loop, own = { 0, UINT64_MAX };

	for (uint64_t at = proto->bytecode; at < end; at += 4)
		if (loop_around(code, at, pc, &loop) && is_of_trace(code, &loop, root))
			own = loop;
	for (uint64_t at = proto->bytecode; at < end; at += 4)
		if (loop_around(code, at, pc, &loop) && loop.start >= own.start &&
		    loop.end <= own.end && (loop.start != own.start || loop.end != own.end) &&
		    (!with_call || has_call(code, loop.start, loop.end + 4, NULL)))
			return true;
	return false;
}

/** Two snapshots with the same frames, and the code between them. */
struct stretch {
	const struct trace_source *source;
	const struct trace *trace;
	const struct trace_snapshot *snapshot, *next;
	uint32_t root; /* number of its root trace */
	bool round;    /* the trace's loop restarts in between */
};

/* Get the code of a frame's function, if it can be searched. */
static bool code_of(const struct stretch *stretch, const struct trace_frame *frame,
		    struct code *ret_code)
{
	const struct trace_source *source = stretch->source;
	struct failure why;

	ret_code->state = source->view.state;
	ret_code->reader = source->view.memory->any;
	ret_code->metamethods = stretch->trace->has_metamethods;
	ret_code->proto = state_get_proto(
		&source->view, frame->function ? frame->function : stretch->trace->startpt, &why);
	return ret_code->proto && ret_code->proto->bc &&
	       trace_charge(source->view.state, ret_code->proto->sizebc / 16 + 1);
}

/* Count the frames, from the lowest on, that are valid even if the code left the frames above
 * them and came back to the same chain. */
static unsigned count_kept(const struct stretch *stretch)
{
	const struct trace_snapshot *snapshot = stretch->snapshot;

	if (stretch->round && snapshot->count > 1)
		return 0;
	for (unsigned n = 0; n + 1 < snapshot->count; n++) {
		const struct trace_frame *caller = frame_from_root(stretch->trace, snapshot, n);
		struct code code;

		if (caller->kind == LUASTATE_LUA &&
		    (!code_of(stretch, caller, &code) ||
		     may_repeat(&code, caller->pc, stretch->root, false)))
			return n;
	}
	return snapshot->count;
}

/* ---- Calls ------------------------------------------------------------------------------ */

/* Whether the topmost frame passes a call on the way to the next snapshot. If that call has no
 * guard, neither snapshot shows its callee. */
static bool may_call(const struct stretch *stretch)
{
	const struct trace *trace = stretch->trace;
	const struct trace_frame *leaf = &trace->frames[stretch->snapshot->first];
	uint64_t from = leaf->pc, to = trace->frames[stretch->next->first].pc, back = 0;
	struct code code;

	if (leaf->kind != LUASTATE_LUA || !knows_others(trace, stretch->snapshot))
		return false;
	if (!code_of(stretch, leaf, &code) || may_repeat(&code, from, stretch->root, true) ||
	    may_repeat(&code, to, stretch->root, true))
		return true;
	if (from <= to && !stretch->round)
		return has_call(&code, from, to, NULL);
	/* The code between goes round a loop. The position may be that of a jump. */
	if (has_call(&code, from, code.proto->bytecode + 4 * (uint64_t)code.proto->sizebc, &back))
		return true;
	return !back || back > to || has_call(&code, back, to, NULL);
}

/* Find out which of the common frames may be invalid between the snapshots. */
static void look_between(const struct stretch *stretch, struct trace_snapshot *snapshot)
{
	unsigned kept;

	if (!snapshot->exact || snapshot->count == 0 ||
	    (snapshot == stretch->next && !stretch->round))
		return;
	kept = count_kept(stretch);
	if (kept < snapshot->sure)
		snapshot->sure = (uint16_t)kept;
	snapshot->exact = kept == snapshot->count && !may_call(stretch);
}

static uint32_t root_of(const struct trace_source *source)
{
	const struct luastate_layout *layout = source->view.layout;
	uint16_t root, own;

	memcpy(&root, source->header + layout->GCtrace_root, 2);
	memcpy(&own, source->header + layout->GCtrace_traceno, 2);
	return root ? root : own;
}

/* After the last snapshot a looping trace restarts its loop. Other traces end. */
void trace_compare(const struct trace_source *source, struct trace *trace)
{
	const struct luastate_layout *layout = source->view.layout;
	uint32_t loop = state_u32(source->header, layout->GCtrace_mcloop);
	bool hides = hides_functions(trace);
	struct stretch stretch = { .source = source, .trace = trace, .root = root_of(source) };

	/* hides_functions() searches all frames for each function. */
	trace_charge(source->view.state, trace->own_count * trace->frame_count / 4096);
	for (size_t i = 0; i < trace->snapshot_count; i++) {
		struct trace_snapshot *snapshot = &trace->snapshots[i];
		const struct trace_snapshot *next = snapshot + 1;

		if (i + 1 == trace->snapshot_count) {
			next = loop ? trace_snapshot_at(trace, trace->mcode + loop) : snapshot;
			stretch.round = loop != 0;
		}
		if (next) {
			compare(trace, snapshot, next);
			trace_find_inlined_callee(source, trace, snapshot, next);
		}
		if (layout->SnapShot_mcofs == LAYOUT_ABSENT)
			doubt(trace, snapshot);
		stretch.snapshot = snapshot;
		stretch.next = next;
		if (next)
			look_between(&stretch, snapshot);
		snapshot->exact &= !hides && !snapshot->callee;
	}
}
