/* SPDX-License-Identifier: MIT */
/*
 * The native walk of a thread that sleeps. The kernel tells its pc and sp, all other registers are
 * 0. Most functions need no more, or find what their caller had in a register saved on the stack by
 * one below; but a frame may be described by its frame pointer alone. Where that can be found by
 * other means, the walk has to arrive at the next C frame of the interpreter, which is known for
 * certain, else it is not believed.
 */
#include "daemon/decode/sleeper_walk.h"

enum {
	/* The kernel keeps the lowest page free; no frame is so large that it reaches beyond this.
	 */
	LOW_BYTES = 65536,
	/* Native frames between two of the interpreter's that are tried at most. */
	TRIAL_STEPS = 256,
	/* Frame pointers of one walk that are looked for: below a C frame they are known. */
	FINDS_MAX = 64,
};

/* What lies at a small distance from a register that is 0. */
static bool is_low(uint64_t address)
{
	return address + LOW_BYTES < 2 * (uint64_t)LOW_BYTES;
}

/* A frame whose caller depends on an unknown register leads to the end, or to the lowest memory. */
static int step(struct daemon_target *target, struct failure *why)
{
	int got = symbols_unwind_step(target->unwinder, why);
	bool is_leaf = target->item_count == 1;

	/* Who waits in a system call has called for it. */
	if ((got == 0 && is_leaf) ||
	    (got < 0 && why->kind == FAILURE_FAULT && is_low(why->address)))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "unwind without registers");
	return got;
}

/* The next C frame of the interpreter above the frame that the unwinder stands at. */
static bool find_next(struct daemon_target *target, const struct luastate_memory *memory,
		      struct luastate_vm_frame *ret_vm_frame)
{
	const struct symbols_mapping *stack;
	struct attach_registers regs;
	struct failure why;

	symbols_unwind_registers(target->unwinder, &regs);
	stack = symbols_space_find(target->space, attach_sp(&regs));
	return stack && luastate_find_vm_frame_above(target->lua, memory, &regs, stack->end,
						     ret_vm_frame, &why) == 0;
}

/* Whether the walk comes to the C frame, without passing it. */
static bool arrives(struct daemon_target *target, const struct luastate_vm_frame *vm_frame)
{
	struct symbols_native_frame frame;
	struct failure why;

	for (int i = 0; i < TRIAL_STEPS; i++) {
		if (symbols_unwind_step(target->unwinder, &why) <= 0)
			return false;
		symbols_unwind_frame(target->unwinder, &frame);
		if (frame.sp > vm_frame->address)
			return false;
		if (vm_frame->compiled ? frame.pc == attach_pc(&vm_frame->frame)
				       : frame.sp == vm_frame->address)
			return vm_frame->compiled ||
			       luastate_in_interpreter(target->lua, frame.pc - 1);
	}
	return false;
}

/* Set the unwinder back to a frame where it stood before. */
static void go_back(struct daemon_target *target, const struct luastate_memory *memory,
		    const struct attach_registers *regs)
{
	if (target->item_count == 1)
		symbols_unwind_begin(target->unwinder, regs, memory->stopped);
	else
		symbols_unwind_begin_caller(target->unwinder, regs, memory->stopped);
}

/* @return Whether the frame pointer is known now; the unwinder stands at the same frame. */
static bool find_frame_pointer(struct daemon_target *target, const struct luastate_memory *memory)
{
	struct attach_registers before, found;
	struct luastate_vm_frame vm_frame;
	struct failure why;
	bool good;

	symbols_unwind_registers(target->unwinder, &before);
	if (!find_next(target, memory, &vm_frame) ||
	    symbols_unwind_find_frame_pointer(target->unwinder, vm_frame.address, &why) != 0)
		return false;
	symbols_unwind_registers(target->unwinder, &found);
	good = arrives(target, &vm_frame);
	go_back(target, memory, good ? &found : &before);
	return good;
}

int asleep_step(struct daemon_target *target, const struct luastate_memory *memory,
		struct failure *why)
{
	int got = step(target, why);

	if (target->item_count == 1)
		target->pointer_finds = 0;
	if (got >= 0 || why->kind != FAILURE_NOT_FOUND || target->pointer_finds++ >= FINDS_MAX ||
	    !find_frame_pointer(target, memory))
		return got;
	return step(target, why);
}
