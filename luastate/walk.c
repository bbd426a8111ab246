/* SPDX-License-Identifier: MIT */
/*
 * The walk over Lua frames.
 *
 * GC64, two slots a frame (lj_frame.h). A base points to a frame's first slot; below it:
 *
 *   base-32   base-24  | base-16  base-8 | base …
 *   [cont     pc    ]    func     link     slots
 *   continuation only
 *
 * The link's low three bits tell who called:
 *   Lua (x00)      the link is the return address in the caller's bytecode; the CALL before it
 * tells by its A operand how far below the caller's base is C 001, CP 101  entered from C: end of a
 * run; the rest is the distance to the frame below CONT 010       a metamethod: the caller's
 * position is at base-24 VARG 011       the frame of a vararg function above its own arguments: one
 * function, two frames PCALL 11x      called by pcall or xpcall, whose own frame is below
 */
#include "luastate/walk.h"

enum {
	FRAME_TYPE = 3,
	FRAME_TYPEP = 7,
	FRAME_C = 1,
	FRAME_CONT = 2,
	FRAME_VARG = 3,
	FRAME_CP = 5,
	FRAME_SLOTS = 16, /* bytes of func and link */
	/* Steps of all walks of one sample: no chain is longer than LUASTATE_FRAMES_MAX, and a few
	 * candidates are walked in vain. */
	WALK_STEPS = 65536,
	/* Names looked for in one sample; the next one goes on. A hostile variable table makes each
	 * one cost as much as a sample. */
	WALK_NAMES = 256,
};

int walk_read_stack(struct walk *walk, uint64_t L, struct walk_stack *ret_stack,
		    struct failure *why)
{
	const struct luastate_vm *vm = luastate_vm_of(walk->state, walk->reader, L, why);
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t stack;

	if (!vm || state_read(walk->stopped, L, bytes, (size_t)vm->layout->lua_State_sizeof, why))
		return -1;
	stack = state_u64(bytes, vm->layout->lua_State_stack);
	*ret_stack = (struct walk_stack){
		.layout = vm->layout,
		.L = L,
		.G = vm->G,
		.bottom = stack + FRAME_SLOTS,
		.limit = state_u64(bytes, vm->layout->lua_State_maxstack) + FRAME_SLOTS,
		.base = state_u64(bytes, vm->layout->lua_State_base),
	};
	if (!state_is_pointer(stack) || stack % 8 != 0 || ret_stack->limit < ret_stack->bottom)
		return failure_set(why, FAILURE_INVALID, 0, 0, L, "read a coroutine's stack");
	return 0;
}

bool walk_is_base(const struct walk_stack *stack, uint64_t base)
{
	return base % 8 == 0 && base >= stack->bottom && base <= stack->limit;
}

int walk_read_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		       struct walk_function *ret_function, struct failure *why)
{
	const struct luastate_layout *layout = stack->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t slot, bcff = stack->G + (uint64_t)layout->global_State_to_bcff;

	memset(ret_function, 0, sizeof(*ret_function));
	if (state_read(walk->stopped, base - FRAME_SLOTS, &slot, 8, why) != 0)
		return -1;
	if (state_tag(slot) == layout->tag_thread) {
		ret_function->dummy = true;
		return 0;
	}
	if (state_tag(slot) != layout->tag_func)
		return failure_set(why, FAILURE_INVALID, 0, 0, base, "find a frame's function");
	if (state_read_object(layout, walk->reader, state_object(slot), layout->gct_func, bytes,
			      (size_t)layout->GCfunc_header, why) != 0)
		return -1;
	ret_function->ffid = bytes[layout->GCfunc_ffid];
	ret_function->pc = state_u64(bytes, layout->GCfunc_pc);
	ret_function->f = state_u64(bytes, layout->GCfuncC_f);
	if (ret_function->ffid == 0) {
		ret_function->kind = LUASTATE_LUA;
		ret_function->proto =
			state_get_proto(walk->state, layout, walk->reader,
					ret_function->pc - (uint64_t)layout->GCproto_sizeof, why);
		return ret_function->proto ? 0 : -1;
	}
	if (!state_is_pointer(ret_function->f) || !state_is_pointer(ret_function->pc))
		return failure_set(why, FAILURE_INVALID, 0, 0, base, "find a function's code");
	ret_function->kind = ret_function->ffid == 1 ? LUASTATE_C : LUASTATE_FAST;
	/* A fast function in assembler shares its f with others; its bytecode is its own. */
	if (ret_function->kind == LUASTATE_FAST && ret_function->pc >= bcff &&
	    ret_function->pc - bcff < (uint64_t)layout->global_State_bcff_size)
		ret_function->f = ret_function->pc;
	return 0;
}

static void load_names(struct walk *walk, uint64_t G)
{
	struct timespec now;
	struct failure why;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec * 1000000000u < walk->state->names_loaded_ns + 1000000000u)
		return;
	luastate_load_names(walk->state, walk->reader, G, &why);
}

static struct luastate_function *get_function(struct walk *walk, const struct walk_stack *stack,
					      const struct walk_function *function)
{
	struct luastate_function *callable;

	if (function->kind == LUASTATE_LUA)
		return &function->proto->function;
	callable = state_get_callable(walk->state, function->kind, function->f, function->ffid);
	if (callable && !callable->name) {
		load_names(walk, stack->G);
		callable = state_get_callable(walk->state, function->kind, function->f,
					      function->ffid);
	}
	return callable;
}

static int append(struct walk *walk, const struct walk_stack *stack,
		  const struct walk_function *function, uint64_t pc, unsigned run,
		  struct failure *why)
{
	struct luastate_chain *chain = walk->chain;
	struct luastate_frame *frame;
	struct luastate_function *known = get_function(walk, stack, function);

	if (!known)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, function->f, "keep a function");
	if (chain->count == LUASTATE_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, stack->L, "walk so many frames");
	frame = &chain->frames[chain->count++];
	*frame = (struct luastate_frame){ .function = known, .owner = run };
	if (function->kind == LUASTATE_LUA) {
		/* Without a position the frame is being entered or left: its definition's line. */
		frame->pc = pc;
		frame->line = state_proto_line(function->proto, walk->reader,
					       pc ? pc : function->proto->bytecode);
	}
	return 0;
}

/* One step of the walk: the frame at `base` whose function stands at `pc`. */
struct step {
	uint64_t base, pc;
	struct walk_function function;
	uint64_t link;
};

static int read_step(struct walk *walk, const struct walk_stack *stack, struct step *step,
		     struct failure *why)
{
	if (!walk_is_base(stack, step->base))
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base, "follow a frame");
	if (walk_read_function(walk, stack, step->base, &step->function, why) != 0)
		return -1;
	if (step->pc && step->function.kind == LUASTATE_LUA && !step->function.dummy &&
	    !state_proto_holds(step->function.proto, step->pc))
		return failure_set(why, FAILURE_INVALID, 0, 0, step->pc,
				   "match a position with its function");
	return state_read(walk->stopped, step->base - 8, &step->link, 8, why);
}

/* Called by Lua: the instruction before the return address tells the caller's base. */
static int caller_of_lua(struct walk *walk, const struct walk_stack *stack, const struct step *step,
			 struct step *ret_caller, struct failure *why)
{
	uint32_t ins;

	if (!state_is_pointer(step->link) ||
	    state_read(walk->reader, step->link - 4, &ins, 4, why) != 0)
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base,
				   "follow a return address");
	ret_caller->base = step->base - FRAME_SLOTS - 8 * (uint64_t)(ins >> 8 & 0xff);
	ret_caller->pc = step->link - 4;
	if (read_step(walk, stack, ret_caller, why) != 0)
		return -1;
	if (ret_caller->function.dummy || ret_caller->function.kind != LUASTATE_LUA)
		return failure_set(why, FAILURE_INVALID, 0, 0, step->link,
				   "match a return address with its function");
	if (!step->function.dummy && step->function.kind == LUASTATE_LUA &&
	    state_lacks_name(step->function.proto, step->link - 4) && walk->names_left) {
		walk->names_left--;
		state_learn_name(stack->layout, step->function.proto, ret_caller->function.proto,
				 walk->reader, step->link - 4);
	}
	return 0;
}

static int caller_by_delta(struct walk *walk, const struct walk_stack *stack,
			   const struct step *step, struct step *ret_caller, struct failure *why)
{
	uint64_t delta = step->link & ~(uint64_t)FRAME_TYPEP, pc;

	if (delta < FRAME_SLOTS || delta > step->base - stack->bottom)
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base, "follow a frame link");
	ret_caller->base = step->base - delta;
	ret_caller->pc = 0;
	if ((step->link & FRAME_TYPEP) == FRAME_VARG)
		ret_caller->pc = step->pc;
	if ((step->link & FRAME_TYPEP) == FRAME_CONT &&
	    state_read(walk->stopped, step->base - 24, &pc, 8, why) == 0 && state_is_pointer(pc))
		ret_caller->pc = pc - 4;
	return read_step(walk, stack, ret_caller, why);
}

static int walk_steps(struct walk *walk, const struct walk_stack *stack, struct step *step,
		      unsigned *ret_runs, struct failure *why)
{
	bool below_vararg = false;
	unsigned runs = 0;

	while (walk->steps_left) {
		struct step caller = { 0 };
		bool lua = (step->link & FRAME_TYPE) == 0;
		bool bottom = step->base == stack->bottom;

		walk->steps_left--;
		if (!step->function.dummy && !below_vararg && !bottom &&
		    append(walk, stack, &step->function, step->pc, runs, why) != 0)
			return -1;
		if (bottom) {
			*ret_runs = runs;
			return 0;
		}
		if ((lua ? caller_of_lua : caller_by_delta)(walk, stack, step, &caller, why) != 0)
			return -1;
		below_vararg = !lua && (step->link & FRAME_TYPEP) == FRAME_VARG;
		if (below_vararg && caller.function.proto != step->function.proto)
			return failure_set(why, FAILURE_INVALID, 0, 0, step->base,
					   "match a vararg frame with its function");
		if (!lua && (step->link & FRAME_TYPE) == FRAME_C)
			runs++;
		*step = caller;
	}
	return failure_set(why, FAILURE_LIMIT, 0, 0, stack->L, "walk so many frames");
}

int walk_frames(struct walk *walk, const struct walk_stack *stack, const struct walk_top *top,
		unsigned *ret_runs, struct failure *why)
{
	size_t count = walk->chain->count;
	struct step step = { .base = top->base, .pc = top->pc };

	if (read_step(walk, stack, &step, why) == 0 &&
	    walk_steps(walk, stack, &step, ret_runs, why) == 0)
		return 0;
	if (walk->chain->count < LUASTATE_FRAMES_MAX)
		walk->chain->count = count;
	return -1;
}

/* ---- Runs and C frames ------------------------------------------------------------------ */

/* The C frames of one coroutine, newest first, by their index in the caller's list. */
struct owners {
	unsigned index[512];
	unsigned count;
};

/* A protected C call without a Lua frame of its own has a negative number of results: its C frame
 * owns no run (lj_frame.h, cframe_nres). */
static bool owns_run(struct walk *walk, const struct walk_stack *stack, uint64_t frame)
{
	int32_t nres;
	struct failure why;

	return state_read(walk->stopped, frame + (uint64_t)stack->layout->cframe_nres, &nres, 4,
			  &why) == 0 &&
	       nres >= 0;
}

static void find_owners(struct walk *walk, const struct walk_stack *stack,
			const struct luastate_cframe *cframes, size_t count, size_t first,
			struct owners *ret_owners)
{
	ret_owners->count = 0;
	for (size_t i = first; i < count && ret_owners->count < 512; i++)
		if (cframes[i].L == stack->L && owns_run(walk, stack, cframes[i].address))
			ret_owners->index[ret_owners->count++] = (unsigned)i;
}

/* Match runs to C frames from the root: a newest C frame without a run is being entered or left.
 * Frames whose position only the C frame knows get it now. */
static int assign_owners(struct walk *walk, const struct walk_stack *stack,
			 const struct luastate_cframe *cframes, const struct owners *owners,
			 size_t first_frame, unsigned runs, struct failure *why)
{
	struct luastate_chain *chain = walk->chain;
	unsigned shift, previous = UINT32_MAX;

	if (owners->count > runs + 1 || owners->count < runs ||
	    (owners->count == 0 && chain->count > first_frame))
		return failure_set(why, FAILURE_INVALID, 0, 0, stack->L,
				   "match Lua frames with C frames");
	shift = owners->count > runs ? owners->count - runs : 0;
	for (size_t i = first_frame; i < chain->count; i++) {
		struct luastate_frame *frame = &chain->frames[i];
		unsigned run = frame->owner;
		unsigned slot = run + shift < owners->count ? run + shift : owners->count - 1;
		const struct luastate_cframe *cframe = &cframes[owners->index[slot]];

		frame->owner = owners->index[slot];
		if (run != previous && !frame->pc && frame->function->kind == LUASTATE_LUA &&
		    !cframe->leaf) {
			struct state_proto *proto =
				(struct state_proto *)((char *)frame->function -
						       offsetof(struct state_proto, function));

			if (state_proto_holds(proto, cframe->pc) && cframe->pc > proto->bytecode) {
				frame->pc = cframe->pc - 4;
				frame->line = state_proto_line(proto, walk->reader, frame->pc);
			}
		}
		previous = run;
	}
	return 0;
}

/* A stack of more frames than a chain holds: what was walked is its leaf's end, and belongs to the
 * newest C frames. */
static void keep_leaf_end(struct luastate_chain *chain, const struct owners *owners, size_t first)
{
	for (size_t i = first; i < chain->count && owners->count; i++) {
		unsigned run = chain->frames[i].owner;

		chain->frames[i].owner =
			owners->index[run < owners->count ? run : owners->count - 1];
	}
}

static int walk_coroutine(struct walk *walk, const struct luastate_cframe *cframes, size_t count,
			  size_t first, struct failure *why)
{
	struct walk_stack stack;
	struct owners owners;
	struct walk_top tops[WALK_TOPS];
	size_t top_count, before = walk->chain->count;
	unsigned runs;

	if (walk_read_stack(walk, cframes[first].L, &stack, why) != 0)
		return -1;
	find_owners(walk, &stack, cframes, count, first, &owners);
	failure_set(why, FAILURE_INVALID, 0, 0, stack.L, "find a coroutine's topmost frame");
	top_count = walk_leaf_tops(walk, &stack, &cframes[first], tops, WALK_TOPS);
	for (size_t i = 0; i < top_count; i++) {
		walk->chain->count = before;
		if (walk_frames(walk, &stack, &tops[i], &runs, why) == 0 &&
		    assign_owners(walk, &stack, cframes, &owners, before, runs, why) == 0)
			return 0;
		if (walk->chain->count == LUASTATE_FRAMES_MAX && why->kind == FAILURE_LIMIT) {
			keep_leaf_end(walk->chain, &owners, before);
			return -1;
		}
	}
	walk->chain->count = before;
	return -1;
}

/* ---- Compiled code ---------------------------------------------------------------------- */

/* The running trace becomes the leaf frame; functions inlined into it are not known here. */
static void add_trace(struct walk *walk, const struct luastate_vm *vm, uint32_t number,
		      unsigned owner)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J, table, trace, proto_at, pc;
	uint8_t bytes[STATE_OBJECT_MAX];
	struct luastate_function *function;
	struct state_proto *proto;
	uint32_t size;
	struct failure why;

	if (state_read(walk->reader, J + (uint64_t)layout->jit_State_sizetrace, &size, 4, &why) ||
	    number >= size ||
	    state_read(walk->reader, J + (uint64_t)layout->jit_State_trace, &table, 8, &why) ||
	    state_read(walk->reader, table + 8 * (uint64_t)number, &trace, 8, &why) ||
	    state_read_object(layout, walk->reader, state_object(trace), layout->gct_trace, bytes,
			      (size_t)layout->GCtrace_sizeof, &why))
		return;
	proto_at = state_object(state_u64(bytes, layout->GCtrace_startpt));
	pc = state_u64(bytes, layout->GCtrace_startpc);
	proto = state_get_proto(walk->state, layout, walk->reader, proto_at, &why);
	if (!proto || walk->chain->count == LUASTATE_FRAMES_MAX)
		return;
	size = state_proto_holds(proto, pc) ? state_proto_line(proto, walk->reader, pc) : 0;
	function = state_get_trace(walk->state, number, proto_at, proto->function.chunkname, size);
	if (function)
		walk->chain->frames[walk->chain->count++] = (struct luastate_frame){
			.function = function, .line = size, .owner = owner
		};
}

/* The VM is that of the newest C frame that has a coroutine: one that is being entered or left has
 * none yet. */
static const struct luastate_vm *vm_of_frames(struct walk *walk,
					      const struct luastate_cframe *cframes, size_t count)
{
	struct failure why;

	for (size_t i = 0; i < count; i++)
		if (cframes[i].L)
			return luastate_vm_of(walk->state, walk->reader, cframes[i].L, &why);
	return walk->state->vm_count ? &walk->state->vms[0] : NULL;
}

static void read_state(struct walk *walk, const struct luastate_vm *vm,
		       const struct luastate_cframe *cframe)
{
	struct luastate_chain *chain = walk->chain;
	struct failure why;

	if (!vm || luastate_read_vmstate(walk->state, walk->stopped, vm->G, &chain->vmstate, &why))
		return;
	if (chain->vmstate > 0) {
		chain->trace = (uint32_t)chain->vmstate;
		if (cframe->compiled)
			add_trace(walk, vm, chain->trace, 0);
	}
}

void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct attach_registers *regs, const struct luastate_cframe *cframes,
		   size_t cframe_count, struct luastate_chain *ret_chain)
{
	struct walk walk = { .state = state,
			     .stopped = memory->stopped,
			     .reader = memory->any,
			     .regs = regs,
			     .chain = ret_chain,
			     .steps_left = WALK_STEPS,
			     .names_left = WALK_NAMES };
	const struct luastate_vm *vm;
	struct failure why;

	ret_chain->outcome = LUASTATE_FULL;
	ret_chain->count = 0;
	ret_chain->trace = 0;
	ret_chain->vmstate = ~1;
	if (cframe_count == 0)
		return;
	vm = vm_of_frames(&walk, cframes, cframe_count);
	read_state(&walk, vm, &cframes[0]);
	if (state->thorough && vm)
		luastate_load_names(state, memory->any, vm->G, &why);
	for (size_t i = 0; i < cframe_count; i++) {
		bool seen = cframes[i].L == 0;

		for (size_t k = 0; k < i && !seen; k++)
			seen = cframes[k].L == cframes[i].L;
		if (!seen && walk_coroutine(&walk, cframes, cframe_count, i, &why) != 0)
			ret_chain->outcome = why.kind == FAILURE_FAULT || why.kind == FAILURE_LIMIT
						     ? LUASTATE_TRUNCATED
						     : LUASTATE_TORN;
	}
}
