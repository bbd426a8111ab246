/* SPDX-License-Identifier: MIT */
/*
 * Which function runs between two snapshots of its caller, without a snapshot of its own?
 *
 * Code between two snapshots counts for the frames of the first one. If it calls a function without
 * a guard and returns, neither snapshot shows the call. The caller's bytecode shows it: if a
 * straight line leads from the first snapshot to a call, the trace makes that call in between.
 *
 *   snapshot A   position of the next instruction …
 *      argument, argument, CALL f      f's code, and the caller's own before and after it
 *   snapshot B   … and of the next one
 *
 * A snapshot with the guard of a comparison or a loop has the position of the branch that is not
 * taken. The trace continues at the other branch.
 *
 * If another snapshot shows the same call, that snapshot shows the callee. Otherwise the trace's
 * constants do, if only one function among them can be the callee: they contain all functions that
 * a trace calls.
 *
 * Source: LuaJIT v2.1 src/lj_bc.h (BCDEF, bc_j), src/lj_ir.h (IRDEF), src/lj_snap.c (lj_snap_add:
 * which snapshots are merged), src/lj_record.c (rec_call_specialize, rec_comp_fixup, rec_for). The
 * opcodes are the same in all builds of layouts.table.
 */
#include "luastate/trace/trace.h"

#include "luastate/function/call_names.h"
#include "luastate/state/invariants.h"

enum {
	IR_NE = 9, /* the last comparison */
	/* Maximum instructions of a caller, which are searched for each of its snapshots. Few
	 * functions are longer. */
	CODE_MAX = 4096,
	/* The compiler stops at 500 (maxsnap). */
	SNAPSHOTS_MAX = 1024,
	/* Bytes of packed names that one step reads, see trace_charge(). */
	NAME_BYTES = 64,
};

/** The path of a trace between two snapshots. */
struct way {
	const struct trace_source *source;
	const struct trace *trace;
	const struct trace_snapshot *snapshot, *next;
	const struct state_proto *caller;
	bool turned;   /* the path does not begin at the snapshot's position */
	uint64_t call; /* the call on the path */
	unsigned own;  /* number of the caller's own instructions on the path, as far as known */
};

static uint64_t code_end(const struct state_proto *proto)
{
	return proto->bytecode + 4 * (uint64_t)proto->sizebc;
}

static bool instruction_at(const struct way *way, uint64_t pc, uint32_t *ret_ins)
{
	struct failure why;

	return pc >= way->caller->bytecode && pc < code_end(way->caller) &&
	       state_proto_instruction(way->caller, way->source->view.memory->any, pc, ret_ins,
				       &why) == 0;
}

static bool is_call(uint32_t ins)
{
	return ((ins & 0xff) >= BC_CALLM && (ins & 0xff) <= BC_ITERN) ||
	       (ins & 0xff) == STATE_OPCODE_UNKNOWN;
}

/* Whether the next instruction may be another than the following one. */
static bool is_jump(uint32_t ins)
{
	uint32_t op = ins & 0xff;

	return op == STATE_OPCODE_UNKNOWN || op == BC_UCLO || op == BC_CALLMT || op == BC_CALLT ||
	       (op >= BC_ISNEXT && op <= BC_JMP);
}

/* ---- The way ---------------------------------------------------------------------------- */

static uint32_t snapshot_ref(const struct way *way, const struct trace_snapshot *snapshot)
{
	const struct trace_source *source = way->source;
	uint32_t index = (uint32_t)(snapshot - way->trace->snapshots);

	return state_u32(trace_snapshot_bytes(source, index), source->view.layout->SnapShot_ref) &
	       0xffff;
}

/* Whether one of the snapshot's guards may be that of a branch. */
static bool has_branch(const struct way *way)
{
	const struct trace_source *source = way->source;
	uint32_t from = snapshot_ref(way, way->snapshot), to = source->block.nins;

	if (way->snapshot + 1 < way->trace->snapshots + way->trace->snapshot_count)
		to = snapshot_ref(way, way->snapshot + 1);
	if (from < TRACE_REF_BASE || to > source->block.nins)
		return true;
	for (uint32_t ref = from; ref < to; ref++)
		if (source->bytes[(size_t)TRACE_INS_BYTES * (ref - source->block.nk) + 5] <= IR_NE)
			return true;
	return false;
}

/* If the instruction at @p pc is a branch with one target @p to, its other target; else 0. */
static uint64_t other_way(const struct way *way, uint64_t pc, uint64_t to)
{
	uint32_t ins, jump;

	if (!instruction_at(way, pc, &ins) || !instruction_at(way, pc + 4, &jump))
		return 0;
	if ((ins & 0xff) == BC_FORI || (ins & 0xff) == BC_JFORI)
		return trace_jump_target(pc, ins) == to ? pc + 4 : 0;
	if ((ins & 0xff) >= BC_ISTYPE || (jump & 0xff) != BC_JMP)
		return 0;
	if (pc + 8 == to)
		return trace_jump_target(pc + 4, jump);
	return trace_jump_target(pc + 4, jump) == to ? pc + 8 : 0;
}

/* The other target of the only branch with the target @p to; 0 if there is no such branch, or
 * several. */
static uint64_t turn(const struct way *way, uint64_t to)
{
	uint64_t found = 0;

	for (uint64_t pc = way->caller->bytecode; pc < code_end(way->caller); pc += 4) {
		uint64_t other = other_way(way, pc, to);

		if (other && found)
			return 0;
		found = other ? other : found;
	}
	return found;
}

/* Whether no other call follows between the call and @p to. Code after a jump may not be on the
 * path, but is searched as well. */
static bool is_last_call(struct way *way, uint64_t to)
{
	uint32_t ins;

	for (uint64_t pc = way->call + 4; to > way->call ? pc < to : true; pc += 4) {
		if (!instruction_at(way, pc, &ins) || is_call(ins))
			return false;
		way->own++;
		if (to <= way->call && is_jump(ins))
			return true;
	}
	return true;
}

/* Find the only call on the path. A straight line must lead to it. */
static bool find_call(struct way *way)
{
	uint64_t from = way->trace->frames[way->snapshot->first].pc;
	uint64_t to = way->trace->frames[way->next->first].pc;
	uint32_t ins;

	way->turned = has_branch(way);
	if (way->turned)
		from = turn(way, from);
	for (uint64_t pc = from; instruction_at(way, pc, &ins) && !is_jump(ins); pc += 4) {
		if (pc == to && !way->turned)
			return false;
		if (is_call(ins)) {
			way->call = pc;
			return (ins & 0xff) <= BC_CALL && is_last_call(way, to);
		}
		way->own++;
	}
	return false;
}

/* ---- The callee ------------------------------------------------------------------------- */

static bool is_in_chain(const struct way *way, uint64_t proto)
{
	for (unsigned i = 0; i < way->snapshot->count; i++)
		if (way->trace->frames[way->snapshot->first + i].function == proto)
			return true;
	return proto == way->caller->address;
}

/*
 * Find the callee of the same call in other snapshots.
 * @return false if they do not show exactly one Lua function. *ret_proto is 0 if no other snapshot
 * shows the call.
 */
static bool find_shown(const struct way *way, uint64_t *ret_proto)
{
	const struct trace *trace = way->trace;

	*ret_proto = 0;
	if (!trace_charge(way->source->view.state, trace->frame_count / 256 + 1))
		return false;
	for (size_t i = 0; i < trace->snapshot_count; i++)
		for (unsigned k = 1; k < trace->snapshots[i].count; k++) {
			const struct trace_frame *callee =
				&trace->frames[trace->snapshots[i].first + k - 1];

			if (callee[1].pc != way->call)
				continue;
			if (callee->kind != LUASTATE_LUA || !callee->function ||
			    (*ret_proto && *ret_proto != callee->function))
				return false;
			*ret_proto = callee->function;
		}
	return true;
}

/* The only function of the trace, of any kind, that is not in the chain. */
static uint64_t find_left(const struct way *way)
{
	const struct trace *trace = way->trace;
	uint64_t found = 0;

	for (size_t i = 0; i < trace->own_count; i++) {
		const struct trace_function *function = &trace->functions[i];

		if (function->kind != LUASTATE_LUA ||
		    (found && found != function->address && !is_in_chain(way, function->address)))
			return 0;
		if (!is_in_chain(way, function->address))
			found = function->address;
	}
	return found;
}

/* Whether the caller has no other call. */
static bool is_only_call(const struct way *way)
{
	uint32_t ins;

	for (uint64_t pc = way->caller->bytecode; pc < code_end(way->caller); pc += 4)
		if (pc != way->call && (!instruction_at(way, pc, &ins) || is_call(ins)))
			return false;
	return true;
}

/* Compare the last parts of the names: names by definition have the tables that hold the
 * function, names by calls have the tables that the caller used. */
static bool has_name(const struct state_proto *proto, const char *name)
{
	return proto && proto->function.name &&
	       strcmp(state_last_name(proto->function.name), name) == 0;
}

/* Whether the call's name fits the callee. If both have names, they must be equal. No function
 * in the chain may have the call's name, because that function could be calling itself. A name
 * that takes too many steps to find fits nothing. */
static bool fits_name(const struct way *way, const struct state_proto *callee)
{
	const struct trace_source *source = way->source;
	const struct trace_frame *frames = &way->trace->frames[way->snapshot->first];
	size_t left = STATE_PACKED_NAMES_MAX;
	char name[STATE_NAME_MAX];
	int rank = state_name_call(source->view.layout, way->caller, source->view.memory->any,
				   way->call, &left, name, sizeof(name));

	if (!trace_charge(source->view.state, (STATE_PACKED_NAMES_MAX - left) / NAME_BYTES) ||
	    left == 0)
		return false;
	if (!rank)
		return true;
	for (unsigned i = 0; i < way->snapshot->count; i++) {
		const struct state_proto *known = state_find_proto(
			source->view.state,
			frames[i].function ? frames[i].function : way->trace->startpt);

		if (has_name(known, name))
			return false;
	}
	return !callee->function.name || has_name(callee, name);
}

static const struct state_proto *proto_at(const struct way *way, uint64_t address)
{
	struct failure why;

	return address ? state_get_proto(&way->source->view, address, &why) : NULL;
}

static const struct state_proto *find_callee(const struct way *way)
{
	const struct state_proto *callee;
	uint64_t shown;

	if (!find_shown(way, &shown))
		return NULL;
	if (shown)
		return is_in_chain(way, shown) ? NULL : proto_at(way, shown);
	if (way->turned && (way->snapshot->count > 1 || !is_only_call(way)))
		return NULL;
	callee = proto_at(way, find_left(way));
	return callee && fits_name(way, callee) ? callee : NULL;
}

void trace_find_inlined_callee(const struct trace_source *source, const struct trace *trace,
			       struct trace_snapshot *snapshot, const struct trace_snapshot *next)
{
	struct way way = { .source = source, .trace = trace, .snapshot = snapshot, .next = next };
	const struct state_proto *callee;
	const struct trace_frame *leaf;

	/* If only the guards give the offsets, code after a snapshot's last guard belongs to the
	 * next snapshot. */
	if (source->view.layout->SnapShot_mcofs == LAYOUT_ABSENT || next == snapshot ||
	    trace->snapshot_count > SNAPSHOTS_MAX || snapshot->count == 0 ||
	    snapshot->sure != snapshot->count || next->count != snapshot->count)
		return;
	leaf = &trace->frames[snapshot->first];
	way.caller = leaf->kind == LUASTATE_LUA
			     ? proto_at(&way, leaf->function ? leaf->function : trace->startpt)
			     : NULL;
	if (!way.caller || !way.caller->bc || way.caller->sizebc > CODE_MAX ||
	    !trace_charge(source->view.state, way.caller->sizebc / 16 + 1) ||
	    !state_proto_holds(way.caller, leaf->pc) || !find_call(&way))
		return;
	callee = find_callee(&way);
	/* The first instruction has the line of the definition, and the last one returns. Neither
	 * counts. */
	if (!callee || callee->sizebc <= 2 || callee->sizebc - 2 <= way.own)
		return;
	snapshot->callee = callee->address;
	snapshot->callee_pc = callee->bytecode + 4;
	snapshot->call = way.call;
}
