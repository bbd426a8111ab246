/* SPDX-License-Identifier: MIT */
/*
 * Where a coroutine's topmost frame is.
 *
 * In the interpreter BASE (rdx) and PC (rbx) tell. Some instructions of a call or a return have
 * moved one of the two and not yet the other, and code that calls C leaves rdx to C. So there is a
 * list of candidates, and the one is taken from which the walk reaches the bottom of the stack with
 * every position inside its function.
 *
 * Source: LuaJIT v2.1 src/vm_x64.dasc (register names; ins_NEXT, ins_call, ins_callt, BC_RET,
 * fff_res, vm_return).
 */
#include "luastate/walk.h"

/* mov eax, [rbx]; movzx ecx, ah; movzx ebp, al; add rbx, 4: until its end PC is the instruction
 * that comes, behind it PC is one past the instruction that runs. */
static const uint8_t ins_next[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f,
				    0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04 };
static const unsigned ins_next_starts[] = { 0, 2, 5, 8 };

/* mov [rdx-8], rbx: BASE is the callee's already, its link is not stored yet. */
static const uint8_t store_link[] = { 0x48, 0x89, 0x5a, 0xf8 };
/* mov rbx, [rbp+0x20]: the link is stored, PC is still the caller's. */
static const uint8_t load_pc[] = { 0x48, 0x8b, 0x5d, 0x20 };

static bool code_at(const struct walk *walk, uint64_t pc, const uint8_t *bytes, size_t len)
{
	const struct state_interpreter *interpreter = state_interpreter_at(walk->state, pc);

	return interpreter && pc + len <= interpreter->end &&
	       memcmp(interpreter->code + (pc - interpreter->start), bytes, len) == 0;
}

static bool before_increment(const struct walk *walk, uint64_t pc)
{
	for (size_t i = 0; i < sizeof(ins_next_starts) / sizeof(ins_next_starts[0]); i++)
		if (code_at(walk, pc - ins_next_starts[i], ins_next, sizeof(ins_next)))
			return true;
	return false;
}

/* A list of candidates in the making. */
struct tops {
	struct walk_top *items;
	size_t count, max;
};

static void add_top(struct tops *tops, uint64_t base, uint64_t pc)
{
	if (tops->count < tops->max)
		tops->items[tops->count++] = (struct walk_top){ .base = base, .pc = pc };
}

static bool read_function(struct walk *walk, const struct walk_stack *stack, uint64_t base,
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

/* The frame that called @base, if @pc is the return address in it. */
static bool caller_at(struct walk *walk, const struct walk_stack *stack, uint64_t base, uint64_t pc,
		      uint64_t *ret_base)
{
	struct walk_function function;
	uint32_t ins;
	uint64_t below;
	struct failure why;

	if (!state_is_pointer(pc) || pc % 4 != 0 ||
	    state_read(walk->reader, pc - 4, &ins, 4, &why) != 0)
		return false;
	below = base - 16 - 8 * (uint64_t)(ins >> 8 & 0xff);
	if (!read_function(walk, stack, below, &function) || !is_lua(&function) ||
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
	add_top(tops, base, pc);
}

/*
 * Results are moved down over the frame of the function that returns: first the link is
 * overwritten, then the function. What the link said is then in PC, or in the C frame's saved
 * position.
 */
static void add_below(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
		      uint64_t base, uint64_t link)
{
	uint64_t below;
	struct walk_function function;

	if (caller_at(walk, stack, base, link, &below)) {
		add_top(tops, below, link - 4);
		return;
	}
	if ((link & 3) == 0 || link >= base - stack->bottom + 8)
		return;
	below = base - (link & ~(uint64_t)7);
	if (read_function(walk, stack, below, &function))
		add_top(tops, below, 0);
}

/* The code of a fast function in assembler reaches from its handler to the next one's. */
static bool in_own_code(struct walk *walk, const struct walk_stack *stack,
			const struct walk_function *function, uint64_t rip)
{
	const struct luastate_layout *layout = stack->layout;
	uint64_t handlers[STATE_FFIDS], own, end = UINT64_MAX;
	uint64_t dispatch = stack->G + (uint64_t)layout->global_State_to_dispatch;
	size_t count = (size_t)layout->dispatch_ff_count;
	uint8_t op;
	struct failure why;

	if (function->kind != LUASTATE_FAST || function->f != function->pc ||
	    state_read(walk->reader, function->pc, &op, 1, &why) != 0 ||
	    op < layout->dispatch_ff_first || op >= layout->dispatch_ff_first + (int)count ||
	    state_read(walk->reader, dispatch + 8 * (uint64_t)layout->dispatch_ff_first, handlers,
		       8 * count, &why) != 0)
		return false;
	own = handlers[op - layout->dispatch_ff_first];
	for (size_t i = 0; i < count; i++)
		if (handlers[i] > own && handlers[i] < end)
			end = handlers[i];
	return rip >= own && rip < end;
}

/* Candidates around one possible base; @pc is the register, @rip where the thread stood. */
static void add_around(struct walk *walk, const struct walk_stack *stack, struct tops *tops,
		       uint64_t base, uint64_t pc, uint64_t rip)
{
	struct walk_function function;
	uint64_t link, below;
	struct failure why;
	bool valid = read_function(walk, stack, base, &function);
	bool entering = code_at(walk, rip, load_pc, sizeof(load_pc));

	if (code_at(walk, rip, store_link, sizeof(store_link))) {
		if (caller_at(walk, stack, base, pc, &below))
			add_top(tops, below, pc - 4);
		return;
	}
	if (valid && is_lua(&function) && !entering && state_proto_holds(function.proto, pc))
		add_lua_top(tops, &function, base, pc, before_increment(walk, rip));
	if (valid && !is_lua(&function)) {
		/* With its link in PC a function returns: its slot may hold a result already, and
		 * that may be another function. */
		if (state_read(walk->stopped, base - 8, &link, 8, &why) == 0 && link == pc &&
		    !in_own_code(walk, stack, &function, rip))
			add_below(walk, stack, tops, base, pc);
		add_top(tops, base, 0);
	}
	if (caller_at(walk, stack, base, pc, &below))
		add_top(tops, below, pc - 4);
	if (valid && is_lua(&function) && entering &&
	    state_read(walk->stopped, base - 8, &link, 8, &why) == 0 &&
	    caller_at(walk, stack, base, link, &below))
		add_top(tops, below, link - 4);
	if (valid && is_lua(&function))
		add_top(tops, base, 0);
}

static uint64_t saved_pc(struct walk *walk, const struct walk_stack *stack,
			 const struct luastate_cframe *cframe)
{
	uint64_t pc = 0;
	struct failure why;

	return state_read(walk->stopped, cframe->address + (uint64_t)stack->layout->cframe_pc, &pc,
			  8, &why) == 0
		       ? pc
		       : 0;
}

/* In machine code the base of the trace's start is kept in the global state; where exactly the
 * trace is, its snapshots would tell. */
static void add_compiled(struct walk *walk, const struct walk_stack *stack, struct tops *tops)
{
	const struct luastate_layout *layout = stack->layout;
	uint64_t base;
	struct failure why;

	if (state_read(walk->stopped, stack->G + (uint64_t)layout->global_State_jit_base, &base, 8,
		       &why) == 0 &&
	    walk_is_base(stack, base))
		add_top(tops, base, 0);
}

size_t walk_leaf_tops(struct walk *walk, const struct walk_stack *stack,
		      const struct luastate_cframe *cframe, struct walk_top *ret_tops, size_t max)
{
	struct tops tops = { .items = ret_tops, .max = max };
	const uint64_t *r = walk->regs->r;
	struct walk_function function;

	if (cframe->compiled)
		add_compiled(walk, stack, &tops);
	if (cframe->leaf) {
		add_around(walk, stack, &tops, r[ATTACH_REG_RDX], r[ATTACH_REG_RBX],
			   r[ATTACH_REG_RIP]);
		if (stack->base != r[ATTACH_REG_RDX])
			add_around(walk, stack, &tops, stack->base, r[ATTACH_REG_RBX], 0);
		/* Returning to C: PC is the base to which the stack falls back. */
		if (walk_is_base(stack, r[ATTACH_REG_RBX]))
			add_top(&tops, r[ATTACH_REG_RBX], 0);
		if (walk_is_base(stack, r[ATTACH_REG_RDX])) {
			add_below(walk, stack, &tops, r[ATTACH_REG_RDX], r[ATTACH_REG_RBX]);
			add_below(walk, stack, &tops, r[ATTACH_REG_RDX],
				  saved_pc(walk, stack, cframe));
		}
		return tops.count;
	}
	/* Below a call into C rbx survives as a saved register, and the base is in the lua_State;
	 * but in short calls, such as a write barrier's, VM code keeps it in rbp alone. */
	if (read_function(walk, stack, cframe->rbp, &function) && is_lua(&function) &&
	    state_proto_holds(function.proto, cframe->pc))
		add_lua_top(&tops, &function, cframe->rbp, cframe->pc, false);
	if (read_function(walk, stack, stack->base, &function) && is_lua(&function) &&
	    state_proto_holds(function.proto, cframe->pc))
		add_lua_top(&tops, &function, stack->base, cframe->pc, false);
	add_top(&tops, stack->base, 0);
	add_below(walk, stack, &tops, stack->base, cframe->pc);
	add_below(walk, stack, &tops, stack->base, saved_pc(walk, stack, cframe));
	if (read_function(walk, stack, cframe->rbp, &function))
		add_top(&tops, cframe->rbp, 0);
	add_compiled(walk, stack, &tops);
	return tops.count;
}
