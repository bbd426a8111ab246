/* SPDX-License-Identifier: MIT */
/*
 * Which frames are on one Lua stack?
 *
 * A base points to a frame's first slot. The words below it depend on the value model (lj_frame.h):
 *
 *   GC64     base-32   base-24  | base-16  base-8 | base …     two slots a frame, of 64 bits
 *            [cont     pc    ]    func     link     slots
 *   else     base-16            | base-8          | base …     one slot, halves of 32 bits
 *            [cont, pc]           func, link        slots
 *            continuation only
 *
 * The link's low three bits show the caller:
 *   Lua   x00  the link is the return address in the caller's bytecode; the A operand of the CALL
 *              before it gives the distance to the caller's base
 *   C     001, CP 101  entered from C: end of a run; the rest is the distance to the frame below
 *   CONT  010  a metamethod: the caller's position is beside the continuation
 *   VARG  011  the frame of a vararg function above its own arguments: one function, two frames
 *   PCALL 11x  called by pcall or xpcall, whose own frame is below
 */
#include "luastate/stack/walk.h"

#include "luastate/function/callables.h"
#include "luastate/function/library_names.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"
#include "luastate/vm/vm_internal.h"

enum {
	FRAME_TYPE = 3,
	FRAME_TYPEP = 7,
	FRAME_C = 1,
	FRAME_CONT = 2,
	FRAME_VARG = 3,
	CONT_FFI_CALLBACK = 1, /* LJ_CONT_FFI_CALLBACK, instead of a continuation's address */
};

/* The lowest slot of a stack holds the coroutine itself instead of a function. */
static bool holds_itself(struct walk *walk, const struct walk_stack *stack, uint64_t lowest)
{
	uint64_t slot;
	struct failure why;

	return state_read(walk->stopped, lowest, &slot, 8, &why) == 0 &&
	       state_object(stack->view.layout, slot) == stack->L;
}

int walk_read_stack(struct walk *walk, uint64_t L, struct walk_stack *ret_stack,
		    struct failure *why)
{
	const struct luastate_vm *vm = state_sample_vm_of(walk->state, walk->reader, L, why);
	const struct luastate_layout *layout = vm ? vm->layout : NULL;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t stack, frame_bytes;

	if (!vm || state_read(walk->stopped, L, bytes, (size_t)layout->lua_State_sizeof, why))
		return -1;
	frame_bytes = layout->gc64 ? 16 : 8;
	stack = state_ref(layout, bytes, layout->lua_State_stack);
	*ret_stack = (struct walk_stack){
		.view = state_view_of(walk->state, walk->memory, vm),
		.L = L,
		.bottom = stack + frame_bytes,
		.limit = state_ref(layout, bytes, layout->lua_State_maxstack) + frame_bytes,
		.base = state_u64(bytes, layout->lua_State_base),
		.vm_frame = state_u64(bytes, layout->lua_State_cframe) & ~(uint64_t)7,
		.frame_bytes = frame_bytes,
	};
	if (!state_is_aligned(stack) || ret_stack->limit < ret_stack->bottom ||
	    !holds_itself(walk, ret_stack, stack))
		return failure_set(why, FAILURE_INVALID, 0, 0, L, "read a coroutine's stack");
	return 0;
}

bool walk_is_base(const struct walk_stack *stack, uint64_t base)
{
	return base % 8 == 0 && base >= stack->bottom && base <= stack->limit;
}

int walk_read_link(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		   uint64_t *ret_link, struct failure *why)
{
	uint64_t at = base - (uint64_t)stack->view.layout->ref_size;

	return state_read_ref(stack->view.layout, walk->stopped, at, ret_link, why);
}

uint64_t walk_caller_base(const struct walk_stack *stack, uint64_t base, uint32_t call)
{
	return base - stack->frame_bytes - 8 * (uint64_t)(call >> 8 & 0xff);
}

/* Read the object in a frame's function slot: a function, or the coroutine at the bottom. */
static int read_slot(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		     uint64_t *ret_object, struct failure *why)
{
	const struct luastate_layout *layout = stack->view.layout;
	uint64_t slot;

	if (state_read(walk->stopped, base - stack->frame_bytes, &slot, 8, why) != 0)
		return -1;
	*ret_object = state_object(layout, slot);
	/* Without GC64, the link is where the tag would be. */
	if (layout->gc64 && *ret_object != stack->L && state_tag(layout, slot) != layout->tag_func)
		return failure_set(why, FAILURE_INVALID, 0, 0, base, "find a frame's function");
	return 0;
}

int walk_read_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
		       struct walk_function *ret_function, struct failure *why)
{
	const struct luastate_layout *layout = stack->view.layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t object, bcff = stack->view.G + (uint64_t)layout->global_State_to_bcff;

	memset(ret_function, 0, sizeof(*ret_function));
	if (read_slot(walk, stack, base, &object, why) != 0)
		return -1;
	if (object == stack->L) {
		ret_function->dummy = true;
		return 0;
	}
	ret_function->object = object;
	if (state_read_object(layout, walk->reader, object, state_gct(layout->tag_func), bytes,
			      (size_t)layout->GCfunc_header, why) != 0)
		return -1;
	ret_function->ffid = bytes[layout->GCfunc_ffid];
	ret_function->pc = state_ref(layout, bytes, layout->GCfunc_pc);
	ret_function->f = state_u64(bytes, layout->GCfuncC_f);
	if (ret_function->ffid == 0) {
		ret_function->kind = LUASTATE_LUA;
		ret_function->proto = state_get_proto(
			&stack->view, ret_function->pc - (uint64_t)layout->GCproto_sizeof, why);
		if (!ret_function->proto)
			return -1;
		walk->state->closures[state_closure_slot(object)] =
			(struct state_closure){ object, ret_function->proto->address };
		return 0;
	}
	if (!state_is_pointer(ret_function->f) || !state_is_pointer(ret_function->pc))
		return failure_set(why, FAILURE_INVALID, 0, 0, base, "find a function's code");
	ret_function->kind = ret_function->ffid == 1 ? LUASTATE_C : LUASTATE_BUILTIN;
	/* Built-ins in assembler share their f. Their bytecode is unique. */
	if (ret_function->kind == LUASTATE_BUILTIN && ret_function->pc >= bcff &&
	    ret_function->pc - bcff < 4 * (uint64_t)layout->GG_NUM_ASMFF)
		ret_function->f = ret_function->pc;
	return 0;
}

/* Whether the object was a function at the stop, according to the stopped stack. Without GC64 a
 * slot has no tag, so only closures met before count. */
static bool was_function(const struct walk *walk, const struct walk_stack *stack, uint64_t object)
{
	return object && (stack->view.layout->gc64 ||
			  walk->state->closures[state_closure_slot(object)].function == object);
}

int walk_expect_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
			 struct walk_function *ret_function, struct failure *why)
{
	if (walk_read_function(walk, stack, base, ret_function, why) == 0)
		return 0;
	/* The stop did not copy it, and it was collected since then. */
	if (was_function(walk, stack, ret_function->object))
		walk->state->losses++;
	return -1;
}

/* One step of the walk: the frame at `base`, whose function is at `pc`. */
struct step {
	uint64_t base, pc;
	struct walk_function function;
	uint64_t link;
};

static struct luastate_function *get_function(struct walk *walk, const struct walk_stack *stack,
					      const struct walk_function *function)
{
	struct luastate_function *callable;

	if (function->kind == LUASTATE_LUA)
		return &function->proto->function;
	callable = state_get_callable(walk->state, function->kind, function->f, function->ffid);
	if (callable && !callable->name) {
		state_load_names(walk->state, walk->reader, stack->view.G);
		callable = state_get_callable(walk->state, function->kind, function->f,
					      function->ffid);
	}
	return callable;
}

int walk_append(struct walk *walk, const struct walk_stack *stack,
		const struct walk_function *function, const struct walk_top *location, unsigned run,
		struct failure *why)
{
	struct luastate_chain *chain = walk->chain;
	struct luastate_frame *frame;
	struct luastate_function *known = get_function(walk, stack, function);

	if (!known)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, function->f, "store a function");
	if (chain->count == LUASTATE_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, stack->L,
				   "walk all frames of a stack");
	frame = &chain->frames[chain->count++];
	*frame = (struct luastate_frame){
		.function = known, .owner = run, .coroutine = stack->L, .object = function->object
	};
	if (function->kind == LUASTATE_LUA) {
		/* A frame without a position is being entered or left. It gets the line of its
		 * definition. */
		frame->pc = location->pc;
		frame->line =
			state_proto_line(function->proto, walk->reader,
					 location->pc ? location->pc : function->proto->bytecode);
		frame->base = location->base;
	}
	return 0;
}

static int read_step(struct walk *walk, const struct walk_stack *stack, struct step *step,
		     struct failure *why)
{
	if (!walk_is_base(stack, step->base))
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base, "follow a frame");
	if (walk_expect_function(walk, stack, step->base, &step->function, why) != 0)
		return -1;
	if (step->pc && step->function.kind == LUASTATE_LUA && !step->function.dummy &&
	    !state_proto_holds(step->function.proto, step->pc))
		return failure_set(why, FAILURE_INVALID, 0, 0, step->pc,
				   "match a position with its function");
	return walk_read_link(walk, stack, step->base, &step->link, why);
}

/* Find a Lua caller. The instruction before the return address shows its base. */
static int caller_of_lua(struct walk *walk, const struct walk_stack *stack, const struct step *step,
			 struct step *ret_caller, struct failure *why)
{
	uint32_t ins;

	if (!state_is_pointer(step->link) ||
	    state_read_call(&stack->view, step->link - 4, &ins, why))
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base,
				   "follow a return address");
	ret_caller->base = walk_caller_base(stack, step->base, ins);
	ret_caller->pc = step->link - 4;
	if (read_step(walk, stack, ret_caller, why) != 0)
		return -1;
	if (ret_caller->function.dummy || ret_caller->function.kind != LUASTATE_LUA)
		return failure_set(why, FAILURE_INVALID, 0, 0, step->link,
				   "match a return address with its function");
	state_note_call(walk->state, ret_caller->function.proto, ret_caller->pc);
	return 0;
}

/* A callback that C code makes through the FFI looks like a metamethod without a position. */
static bool is_callback(struct walk *walk, const struct walk_stack *stack, const struct step *step)
{
	uint64_t cont = 0;
	struct failure why;

	return state_read_ref(stack->view.layout, walk->stopped,
			      step->base - 2 * stack->frame_bytes, &cont, &why) == 0 &&
	       cont == CONT_FFI_CALLBACK;
}

static int caller_by_delta(struct walk *walk, const struct walk_stack *stack,
			   const struct step *step, struct step *ret_caller, struct failure *why)
{
	uint64_t delta = step->link & ~(uint64_t)FRAME_TYPEP, pc;
	/* Beside the continuation, below the frame's own function and link. */
	uint64_t pc_at = step->base - stack->frame_bytes - (uint64_t)stack->view.layout->ref_size;

	if (delta < stack->frame_bytes || delta > step->base - stack->bottom)
		return failure_set(why, FAILURE_INVALID, 0, 0, step->base, "follow a frame link");
	ret_caller->base = step->base - delta;
	ret_caller->pc = 0;
	if ((step->link & FRAME_TYPEP) == FRAME_VARG)
		ret_caller->pc = step->pc;
	if ((step->link & FRAME_TYPEP) == FRAME_CONT && !is_callback(walk, stack, step)) {
		/* The recorder of a trace that ends with a call is creating such a frame. */
		if (state_read_ref(stack->view.layout, walk->stopped, pc_at, &pc, why) != 0 ||
		    !state_is_pointer(pc))
			return failure_set(why, FAILURE_INVALID, 0, 0, step->base,
					   "follow a continuation");
		ret_caller->pc = pc - 4;
	}
	return read_step(walk, stack, ret_caller, why);
}

/* Whether the frame was entered from C. It is then the last of its run. */
static bool ends_run(struct walk *walk, const struct walk_stack *stack, const struct step *step)
{
	if ((step->link & FRAME_TYPE) == FRAME_C)
		return true;
	return (step->link & FRAME_TYPEP) == FRAME_CONT && is_callback(walk, stack, step);
}

static int walk_steps(struct walk *walk, const struct walk_stack *stack, struct step *step,
		      unsigned *ret_runs, struct failure *why)
{
	bool below_vararg = false;
	unsigned runs = 0;

	while (walk->steps_left) {
		const struct walk_top location = { .base = step->base, .pc = step->pc };
		struct step caller = { 0 };
		bool lua = (step->link & FRAME_TYPE) == 0;
		bool bottom = step->base == stack->bottom;

		walk->steps_left--;
		if (!step->function.dummy && !below_vararg && !bottom &&
		    walk_append(walk, stack, &step->function, &location, runs, why) != 0)
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
		if (!lua && ends_run(walk, stack, step))
			runs++;
		*step = caller;
	}
	return failure_set(why, FAILURE_LIMIT, 0, 0, stack->L, "walk all frames of a stack");
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
