/* SPDX-License-Identifier: MIT */
/*
 * Which frames has compiled code inlined, and what is the VM's state?
 *
 * A trace runs on the Lua frame in which it began. The functions that it has called since then are
 * on no stack. The snapshot that is valid at the trace's position shows them. If the snapshot is
 * unknown, the trace itself becomes a frame.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (vmstate), src/lj_asm.c (asm_retf, asm_tail_link: jit_base),
 * src/vm_x64.dasc (vm_exit_handler), src/lj_trace.c (lj_trace_exit, lj_trace_unwind).
 */
#include "luastate/stack/compiled_frames.h"

#include "luastate/arch/arch.h"
#include "luastate/function/callables.h"
#include "luastate/function/library_names.h"
#include "luastate/function/proto.h"
#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"
#include "luastate/vm/choose_layout.h"
#include "luastate/vm/vm_internal.h"

/** Position in compiled code. */
struct position {
	struct state_view view;		       /* of its VM */
	const struct trace *trace;	       /* NULL: unknown */
	const struct trace_snapshot *snapshot; /* NULL: unknown */
	bool exact;			       /* the snapshot is not the one after the position */
	bool moved;			       /* the base is no longer the snapshot's */
	bool stub;			       /* in the exit that belongs to the snapshot */
	bool left; /* the base is already the topmost frame's: the trace continues in another trace
		    */
};

/* ---- Position --------------------------------------------------------------------------- */

/* Use the trace with this number if its machine code is at @pc. */
static bool take_trace(uint32_t number, uint64_t pc, struct position *position)
{
	const struct trace *trace;
	struct failure why;

	if (!number)
		return false;
	trace = trace_get(&position->view, number, &why);
	if (!trace || !trace_holds(trace, pc))
		return false;
	position->trace = trace;
	position->snapshot = trace_snapshot_at(trace, pc);
	position->exact = true;
	position->moved = position->snapshot && pc - trace->mcode >= position->snapshot->moved;
	return true;
}

/* An exit stub belongs to a snapshot of the running trace. */
static bool take_stub(uint32_t number, uint64_t pc, struct position *position)
{
	const struct state_view *view = &position->view;
	const struct trace *trace;
	struct state_stubs stubs;
	uint32_t exit;
	struct failure why;

	trace = number ? trace_get(view, number, &why) : NULL;
	if (!trace)
		return false;
	position->trace = trace;
	if (state_arch_read_stubs(view->layout, view->memory->any, view->G, trace->mcode,
				  trace->szmcode, &stubs) &&
	    state_arch_exit_of(&stubs, pc, &exit) && exit < trace->snapshot_count &&
	    trace->snapshots[exit].count) {
		position->snapshot = &trace->snapshots[exit];
		position->exact = position->stub = true;
	}
	return true;
}

/*
 * Find the position of a VM frame on which a trace runs. The VM's state has the trace's number from
 * the trace's head on, unless the collector runs below. The machine code is therefore searched,
 * too.
 */
static bool find_position(struct walk *walk, const struct luastate_vm *vm,
			  const struct luastate_vm_frame *vm_frame, uint32_t noted,
			  struct position *ret_position)
{
	const struct state_view *view = &ret_position->view;
	uint64_t pc = attach_pc(&vm_frame->frame) - (vm_frame->leaf ? 0 : 1);

	*ret_position = (struct position){ .view = state_view_of(walk->state, walk->memory, vm) };
	return take_trace(noted, pc, ret_position) ||
	       take_trace(trace_number_at(view->state, view->G, pc), pc, ret_position) ||
	       take_trace(state_arch_trace_at(view->layout, view->G, walk->reader, pc), pc,
			  ret_position) ||
	       (STATE_TRACES_NOTED &&
		take_trace(trace_number_behind(view, pc), pc, ret_position)) ||
	       take_stub(noted, pc, ret_position);
}

/* While a trace is left, the compiler's state shows the trace and the exit. */
static bool find_exit(const struct walk *walk, struct position *ret_position)
{
	const struct luastate_vm_work *work = &walk->chain->work;
	struct failure why;

	*ret_position =
		(struct position){ .view = state_view_of(walk->state, walk->memory, walk->vm),
				   .exact = true };
	if (!work->trace)
		return false;
	ret_position->trace = trace_get(&ret_position->view, work->trace, &why);
	if (!ret_position->trace || work->exit >= ret_position->trace->snapshot_count)
		return false;
	ret_position->snapshot = &ret_position->trace->snapshots[work->exit];
	return ret_position->snapshot->count > 0;
}

/* ---- Frames ----------------------------------------------------------------------------- */

static const struct trace_frame *frames_of(const struct position *position)
{
	return &position->trace->frames[position->snapshot->first];
}

/* Whether the snapshot's lowest frame is the frame on the stack. */
static bool fits(const struct position *position, const struct luastate_frame *base)
{
	const struct trace_frame *lowest;
	const struct state_proto *proto = state_proto_of(base->function);

	if (!position->snapshot || position->snapshot->count == 0 || !proto)
		return false;
	lowest = frames_of(position) + position->snapshot->count - 1;
	if (lowest->function)
		return lowest->kind == LUASTATE_LUA &&
		       (position->snapshot->replaced || lowest->function == proto->address);
	return state_proto_holds(proto, lowest->pc);
}

/* Between a return to a lower frame and the next snapshot, the base is that snapshot's. After
 * the last snapshot, the base may be the topmost frame's; all frames are then on the stack. */
static bool fits_otherwise(struct position *position, const struct luastate_frame *base)
{
	const struct trace *trace = position->trace;
	const struct state_proto *proto = state_proto_of(base->function);

	if (!position->snapshot || !proto)
		return false;
	if (position->snapshot + 1 == trace->snapshots + trace->snapshot_count) {
		position->left = frames_of(position)->function == proto->address;
		return position->left;
	}
	position->snapshot++;
	position->exact = false;
	return fits(position, base);
}

static bool insert(struct luastate_chain *chain, size_t at, size_t count)
{
	if (count > LUASTATE_FRAMES_MAX - chain->count)
		return false;
	memmove(chain->frames + at + count, chain->frames + at,
		(chain->count - at) * sizeof(*chain->frames));
	chain->count += count;
	return true;
}

static struct luastate_function *callable_of(const struct state_view *view,
					     const struct trace_frame *frame)
{
	struct luastate_function *function = state_get_callable(
		view->state, (enum luastate_kind)frame->kind, frame->function, frame->ffid);

	if (function && !function->name) {
		state_load_names(view->state, view->memory->any, view->G);
		function = state_get_callable(view->state, (enum luastate_kind)frame->kind,
					      frame->function, frame->ffid);
	}
	return function;
}

/* Resolve one of the snapshot's frames. @param base The frame on the stack. */
static bool resolve(const struct state_view *view, const struct trace_frame *from,
		    const struct luastate_frame *base, struct luastate_frame *ret_frame)
{
	struct state_proto *proto = state_proto_of(base->function);
	struct failure why;

	*ret_frame = (struct luastate_frame){ .owner = base->owner, .coroutine = base->coroutine };
	if (from->kind != LUASTATE_LUA) {
		ret_frame->function = callable_of(view, from);
		return ret_frame->function != NULL;
	}
	if (from->function)
		proto = state_get_proto(view, from->function, &why);
	if (!proto || !state_proto_holds(proto, from->pc))
		return false;
	ret_frame->function = &proto->function;
	ret_frame->pc = from->pc;
	ret_frame->line = state_proto_line(proto, view->memory->any, from->pc);
	return true;
}

/*
 * Resolve the function that the topmost frame calls between the snapshots. The topmost frame's
 * position becomes that call.
 * @param ret_frames Set on success: the callee, then its caller.
 */
static bool resolve_callee(const struct position *position, const struct luastate_frame *base,
			   struct luastate_frame *ret_frames)
{
	const struct trace_snapshot *snapshot = position->snapshot;
	struct trace_frame callee = { .function = snapshot->callee,
				      .pc = snapshot->callee_pc,
				      .kind = LUASTATE_LUA };
	struct trace_frame caller = *frames_of(position);
	struct luastate_frame frames[2];

	if (!snapshot->callee || position->stub || position->left || !position->exact)
		return false;
	caller.pc = snapshot->call;
	if (!resolve(&position->view, &callee, base, &frames[0]) ||
	    !resolve(&position->view, &caller, base, &frames[1]))
		return false;
	memcpy(ret_frames, frames, sizeof(frames));
	return true;
}

/*
 * Replace the frame on the stack by the snapshot's frames.
 * @param trace Their label; 0 if the interpreter continues with them.
 */
static bool put_frames(struct luastate_chain *chain, const struct position *position, size_t at,
		       uint32_t trace)
{
	const struct trace_snapshot *snapshot = position->snapshot;
	const struct luastate_frame base = chain->frames[at];
	struct luastate_frame room[TRACE_DEPTH_MAX + 1], *frames = room + 1;
	/* The frames that are not on the stack, and the one that is. */
	unsigned count = position->left ? 1 : snapshot->count;

	for (unsigned i = 0; i < count; i++) {
		unsigned from_root = count - 1 - i;

		if (!resolve(&position->view, &frames_of(position)[i], &base, &frames[i]))
			return false;
		frames[i].trace = trace;
		frames[i].approximate = trace && !position->left &&
					(!position->exact || from_root >= snapshot->sure ||
					 (i == 0 && !snapshot->exact));
	}
	if (trace && resolve_callee(position, &base, room)) {
		room[0].trace = room[1].trace = trace;
		room[0].approximate = room[1].approximate = true;
		frames = room;
		count++;
	}
	/* A tail call may have replaced the closure by another one of the same function. */
	if (frames[count - 1].function == base.function && !snapshot->replaced) {
		frames[count - 1].object = base.object;
		frames[count - 1].base = base.base;
	}
	if (!insert(chain, at, count - 1))
		return false;
	memcpy(chain->frames + at, frames, count * sizeof(frames[0]));
	return true;
}

/* The trace as a function. */
static struct luastate_function *trace_function(const struct position *position)
{
	const struct state_view *view = &position->view;
	const struct trace *trace = position->trace;
	struct luastate_function *function;
	const struct state_proto *proto;
	struct failure why;

	proto = state_get_proto(view, trace->startpt, &why);
	if (!proto)
		return NULL;
	function = state_get_trace(
		view->state, (uint32_t)trace->key.number, trace->startpt, proto->function.chunkname,
		state_proto_holds(proto, trace->startpc)
			? state_proto_line(proto, view->memory->any, trace->startpc)
			: 0);
	if (!function)
		return NULL;
	function->proto = trace->startpt;
	function->proto_firstline = proto->function.firstline;
	return function;
}

/* Make the running trace the leaf frame, because the functions inlined into it are unknown. */
static void put_trace(struct luastate_chain *chain, const struct position *position, size_t at,
		      unsigned owner)
{
	struct luastate_function *function = trace_function(position);

	if (!function || !insert(chain, at, 1))
		return;
	chain->frames[at] = (struct luastate_frame){ .function = function,
						     .line = (uint32_t)function->firstline,
						     .owner = owner,
						     .trace = function->address };
}

/* ---- A sample --------------------------------------------------------------------------- */

/* Find the topmost frame of a VM frame's run. @return false if it has none. */
static bool find_run(const struct luastate_chain *chain, unsigned owner, size_t *ret_at)
{
	for (size_t i = 0; i < chain->count; i++)
		if (chain->frames[i].owner == owner) {
			*ret_at = i;
			return true;
		}
	return false;
}

static enum luastate_compiled add_inlined(struct luastate_chain *chain, struct position *position,
					  size_t at)
{
	struct luastate_frame *base = &chain->frames[at];
	uint32_t number = (uint32_t)position->trace->key.number;

	if (((!position->moved && fits(position, base)) || fits_otherwise(position, base)) &&
	    put_frames(chain, position, at, number))
		return position->left || (position->exact && position->snapshot->exact)
			       ? LUASTATE_COMPILED_EXACT
			       : LUASTATE_COMPILED_APPROXIMATE;
	base->trace = number;
	put_trace(chain, position, at, base->owner);
	return LUASTATE_COMPILED_TRACE;
}

static void add_compiled(struct walk *walk, unsigned index, uint32_t noted)
{
	const struct luastate_vm_frame *vm_frame = &walk->vm_frames[index];
	struct luastate_chain *chain = walk->chain;
	const struct luastate_vm *vm;
	struct position position;
	enum luastate_compiled compiled = LUASTATE_COMPILED_TRACE;
	struct failure why;
	size_t at = 0;

	vm = state_sample_vm_of(walk->state, walk->reader, vm_frame->L, &why);
	if (!vm)
		return;
	state_note_compiled(walk->state, walk->reader, vm);
	if (!find_position(walk, vm, vm_frame, noted, &position)) {
		if (chain->compiled == LUASTATE_COMPILED_NONE)
			chain->compiled = LUASTATE_COMPILED_TRACE;
		/* A trace shows differences between builds that only the compiler's part has. */
		if (noted)
			state_reconsider_layout(walk->state, walk->reader, vm->G);
		return;
	}
	if (find_run(chain, index, &at))
		compiled = add_inlined(chain, &position, at);
	else
		put_trace(chain, &position, 0, index);
	if (chain->compiled != LUASTATE_COMPILED_NONE)
		return;
	chain->compiled = compiled;
	chain->trace = (uint32_t)position.trace->key.number;
	chain->trace_function = trace_function(&position);
}

/*
 * Until the exit writes the snapshot to the stack, the frames are the snapshot's; after that they
 * are the stack's. Both look the same if a function calls itself. Nothing is added then.
 */
static void add_exit(const struct walk *walk)
{
	struct position position;
	struct luastate_frame *base = walk->chain->frames;
	const struct state_proto *proto;

	if (walk->chain->count == 0 || !find_exit(walk, &position) || !fits(&position, base))
		return;
	proto = state_proto_of(base->function);
	if (position.snapshot->count > 1 &&
	    (!frames_of(&position)->pc || state_proto_holds(proto, frames_of(&position)->pc)))
		return;
	if (position.snapshot->count == 1 && base->pc)
		return;
	put_frames(walk->chain, &position, 0, 0);
}

void walk_read_state(struct walk *walk)
{
	const struct luastate_vm *vm = walk->vm;
	struct luastate_chain *chain = walk->chain;
	struct failure why;
	int vmstate;

	walk->vmstate = -1;
	if (!vm || luastate_read_vmstate(walk->state, walk->stopped, vm->G, &vmstate, &why))
		return;
	walk->vmstate = vmstate;
	chain->state = luastate_sysprof_state(vm, vmstate);
	if (vmstate > 0)
		chain->trace = (uint32_t)vmstate;
}

void walk_add_compiled(struct walk *walk)
{
	uint32_t noted = walk->vmstate > 0 ? (uint32_t)walk->vmstate : 0;

	if (walk->vm && walk->vmstate == ~walk->vm->layout->vmst_exit)
		add_exit(walk);
	for (unsigned i = 0; i < walk->vm_frame_count; i++) {
		if (!walk->vm_frames[i].compiled)
			continue;
		add_compiled(walk, i, noted);
		noted = 0; /* the state is that of the newest one */
	}
}
