/* SPDX-License-Identifier: MIT */
/*
 * Where is a coroutine's topmost frame?
 *
 * In the interpreter, BASE (rdx) and PC (rbx) show it. But some instructions of a call or return
 * have moved only one of the two, and code that calls C gives rdx to C. So there are several
 * candidates, offered best first. The first candidate counts from which the walk reaches the bottom
 * of the stack with every position inside its function.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc (register names; ins_NEXT, ins_call, ins_callt, BC_RET,
 * fff_res, vm_return).
 */
#include "luastate/stack/top_frame.h"

#include "luastate/arch/arch.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

/* More than all sources of candidates together. */
enum { TOPS_MAX = 12 };

/* Receiver of the candidates, one by one. Usually the first one is right, and a search for the
 * others would read memory that no copy has. */
struct tops {
	walk_top_function *take;
	void *context;
	unsigned count;
	bool done; /* no further candidate is needed */
};

static void offer(struct tops *tops, uint64_t base, uint64_t pc)
{
	const struct walk_top top = { .base = base, .pc = pc };

	if (tops->done)
		return;
	tops->count++;
	tops->done = tops->take(tops->context, &top) || tops->count == TOPS_MAX;
}

/* For a base that is certain. */
static bool expect_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
			    struct walk_function *ret_function)
{
	struct failure why;

	return walk_is_base(stack, base) &&
	       walk_expect_function(walk, stack, base, ret_function, &why) == 0;
}

/* For a base that may not be a frame's; only the walk from it can show that. */
static bool try_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
			 struct walk_function *ret_function)
{
	struct failure why;

	return walk_is_base(stack, base) &&
	       walk_read_function(walk, stack, base, ret_function, &why) == 0;
}

static bool is_lua(const struct walk_function *function)
{
	return !function->dummy && function->kind == LUASTATE_LUA;
}

/* The frame that called @base, if @pc is the return address in that frame. */
static bool caller_at(struct walk *walk, const struct walk_stack *stack, uint64_t base, uint64_t pc,
		      uint64_t *ret_base)
{
	struct walk_function function;
	uint32_t ins;
	uint64_t below;
	struct failure why;

	if (!state_is_pointer(pc) || pc % 4 != 0 ||
	    state_read_call(&stack->view, pc - 4, &ins, &why) != 0)
		return false;
	below = walk_caller_base(stack, base, ins);
	if (!try_function(walk, stack, below, &function) || !is_lua(&function) ||
	    !state_proto_holds(function.proto, pc) || pc == function.proto->bytecode)
		return false;
	*ret_base = below;
	return true;
}

static void add_lua_top(struct tops *tops, const struct walk_function *function, uint64_t base,
			uint64_t pc, bool ahead)
{
	if (!ahead && pc > function->proto->bytecode)
		pc -= 4;
	offer(tops, base, pc);
}

/*
 * A return moves results down over the frame of the returning function. It overwrites first the
 * link, then the function. The link's value is then in PC, or in the VM frame's saved position.
 */
static void add_below(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
		      uint64_t base, uint64_t link)
{
	uint64_t below;
	struct walk_function function;

	if (tops->done)
		return;
	if (caller_at(walk, stack, base, link, &below)) {
		offer(tops, below, link - 4);
		return;
	}
	if ((link & 3) == 0 || link >= base - stack->bottom + 8)
		return;
	below = base - (link & ~(uint64_t)7);
	if (try_function(walk, stack, below, &function))
		offer(tops, below, 0);
}

/* The code of a built-in in assembler ends at the handler of the next one. */
static bool in_own_code(struct walk *walk, const struct walk_stack *stack,
			const struct walk_function *function, uint64_t rip)
{
	const struct luastate_layout *layout = stack->view.layout;
	uint64_t handlers[STATE_FFIDS], own, end = UINT64_MAX;
	uint64_t dispatch = stack->view.G + (uint64_t)layout->global_State_to_dispatch;
	size_t count = (size_t)layout->GG_NUM_ASMFF;
	uint8_t op;
	struct failure why;

	if (function->kind != LUASTATE_BUILTIN || function->f != function->pc ||
	    state_read(walk->reader, function->pc, &op, 1, &why) != 0 || op < layout->BC__MAX ||
	    op >= layout->BC__MAX + (int)count ||
	    state_read(walk->reader, dispatch + 8 * (uint64_t)layout->BC__MAX, handlers, 8 * count,
		       &why) != 0)
		return false;
	own = handlers[op - layout->BC__MAX];
	for (size_t i = 0; i < count; i++)
		if (handlers[i] > own && handlers[i] < end)
			end = handlers[i];
	return rip >= own && rip < end;
}

/* Add candidates around one possible base. @pc is the register, @rip the thread's position. */
static void add_around(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
		       uint64_t base, uint64_t pc, uint64_t rip)
{
	const struct state_interpreter *interpreter = state_interpreter_at(walk->state, rip);
	enum state_moment moment =
		interpreter ? state_arch_moment(interpreter, rip) : STATE_MOMENT_PLAIN;
	struct walk_function function;
	uint64_t link, below;
	struct failure why;
	bool valid = expect_function(walk, stack, base, &function);
	bool entering = moment == STATE_MOMENT_LOAD_PC;

	if (moment == STATE_MOMENT_STORE_LINK) {
		if (caller_at(walk, stack, base, pc, &below))
			offer(tops, below, pc - 4);
		return;
	}
	if (valid && is_lua(&function) && !entering && state_proto_holds(function.proto, pc))
		add_lua_top(tops, &function, base, pc, moment == STATE_MOMENT_NEXT);
	if (valid && !is_lua(&function)) {
		/* A function with its link in PC is returning. Its slot may already hold a
		 * result, which may be another function. */
		if (walk_read_link(walk, stack, base, &link, &why) == 0 && link == pc &&
		    !in_own_code(walk, stack, &function, rip))
			add_below(walk, stack, tops, base, pc);
		offer(tops, base, 0);
	}
	if (!tops->done && caller_at(walk, stack, base, pc, &below))
		offer(tops, below, pc - 4);
	if (!tops->done && valid && is_lua(&function) && entering &&
	    walk_read_link(walk, stack, base, &link, &why) == 0 &&
	    caller_at(walk, stack, base, link, &below))
		offer(tops, below, link - 4);
	if (valid && is_lua(&function))
		offer(tops, base, 0);
}

static uint64_t saved_pc(struct walk *walk, const struct walk_stack *stack,
			 const struct luastate_vm_frame *vm_frame)
{
	uint64_t pc = 0;
	struct failure why;

	state_read_ref(stack->view.layout, walk->stopped,
		       vm_frame->address + (uint64_t)stack->view.layout->cframe_pc, &pc, &why);
	return pc;
}

/* In machine code, the global state holds the base of the frame in which the trace began, or to
 * which it has returned. The trace's snapshots show its exact position. */
static void add_compiled(struct walk *walk, const struct walk_stack *stack, struct tops *tops)
{
	const struct luastate_layout *layout = stack->view.layout;
	uint64_t base;
	struct failure why;

	if (!tops->done &&
	    state_read_ref(layout, walk->stopped,
			   stack->view.G + (uint64_t)layout->global_State_jit_base, &base,
			   &why) == 0 &&
	    walk_is_base(stack, base))
		offer(tops, base, 0);
}

/* In the interpreter both registers are valid. */
static void add_interpreted(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
			    const struct luastate_vm_frame *vm_frame)
{
	uint64_t pc = vm_frame->frame.r[STATE_REG_PC];
	const struct state_interpreter *interpreter =
		state_interpreter_at(walk->state, attach_pc(&vm_frame->frame));
	uint64_t base = interpreter ? state_arch_base(interpreter, &vm_frame->frame)
				    : vm_frame->frame.r[STATE_REG_BASE];

	/* In the exit handler, the lua_State has an old base until the handler stores this one
	 * there. */
	if (walk->vmstate == ~stack->view.layout->vmst_exit)
		add_compiled(walk, stack, tops);
	if (!tops->done)
		add_around(walk, stack, tops, base, pc, attach_pc(&vm_frame->frame));
	if (!tops->done && stack->base != base)
		add_around(walk, stack, tops, stack->base, pc, 0);
	/* On return to C, PC is the base that the stack returns to. */
	if (walk_is_base(stack, pc))
		offer(tops, pc, 0);
	if (tops->done || !walk_is_base(stack, base))
		return;
	add_below(walk, stack, tops, base, pc);
	if (!tops->done)
		add_below(walk, stack, tops, base, saved_pc(walk, stack, vm_frame));
}

static void add_at(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
		   uint64_t base, uint64_t pc)
{
	struct walk_function function;

	if (!tops->done && expect_function(walk, stack, base, &function) && is_lua(&function) &&
	    state_proto_holds(function.proto, pc))
		add_lua_top(tops, &function, base, pc, false);
}

/*
 * To end a trace in a call that it cannot record, the recorder inserts a continuation below that
 * call's frame and moves the frame up. The lua_State's base changes last; until then it no longer
 * points to a frame. Until the moved link leads to the continuation, it is still the return address
 * in the caller.
 *
 * Source: LuaJIT v2.1 src/lj_ffrecord.c, recff_stitch().
 */
static void add_stitched(struct walk *walk, const struct walk_stack *stack, struct tops *tops)
{
	uint64_t base = stack->base + stack->frame_bytes + 8, link, below;
	struct walk_function function;
	struct failure why;

	if (tops->done || walk->vmstate != ~stack->view.layout->vmst_record ||
	    !try_function(walk, stack, base, &function) ||
	    walk_read_link(walk, stack, base, &link, &why) != 0)
		return;
	if (caller_at(walk, stack, stack->base, link, &below))
		offer(tops, below, link - 4);
	else
		offer(tops, base, 0);
}

/* Below a call into C, the register of PC is preserved, and the lua_State has the base. But
 * during short calls, such as a write barrier's, VM code keeps the base only in another
 * register. */
static void add_suspended(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
			  const struct luastate_vm_frame *vm_frame, bool resuming)
{
	uint64_t kept = vm_frame->frame.r[STATE_REG_KEPT_BASE],
		 pc = vm_frame->frame.r[STATE_REG_PC];
	struct walk_function function;

	add_at(walk, stack, tops, kept, pc);
	add_at(walk, stack, tops, stack->base, pc);
	offer(tops, stack->base, 0);
	add_stitched(walk, stack, tops);
	if (tops->done || resuming)
		return; /* the frame that resumes is complete; without it, the frames below would
			   fit, too */
	add_below(walk, stack, tops, stack->base, pc);
	if (!tops->done)
		add_below(walk, stack, tops, stack->base, saved_pc(walk, stack, vm_frame));
	if (!tops->done && expect_function(walk, stack, kept, &function))
		offer(tops, kept, 0);
	add_compiled(walk, stack, tops);
}

void walk_top_frames(struct walk *walk, const struct walk_stack *stack,
		     const struct luastate_vm_frame *vm_frame, bool resuming,
		     walk_top_function *take, void *context)
{
	struct tops tops = { .take = take, .context = context };

	if (vm_frame->compiled)
		add_compiled(walk, stack, &tops);
	if (tops.count)
		return; /* the coroutine's own base is older, and would skip frames */
	if (vm_frame->leaf && !vm_frame->compiled)
		add_interpreted(walk, stack, &tops, vm_frame);
	else
		add_suspended(walk, stack, &tops, vm_frame, resuming);
}
