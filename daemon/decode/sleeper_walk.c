/* SPDX-License-Identifier: MIT */
/*
 * How is the native stack of a sleeping thread walked?
 *
 * The kernel gives its pc and sp; all other registers are 0. Most functions need no more, or find a
 * caller's register in a frame below. But some frames are described only by the frame pointer. If
 * another way yields a frame pointer, the walk must arrive at the next VM frame, which is certain;
 * else the frame pointer is rejected.
 */
#include "daemon/decode/sleeper_walk.h"

enum {
	/* The kernel keeps the lowest page free; no frame is larger than this. */
	LOW_BYTES = 65536,
	/* Native frames to try between two VM frames. */
	TRIAL_STEPS = 256,
	/* Frame pointers to search in one walk; below a VM frame they are known. */
	FINDS_MAX = 64,
};

/* Whether an address is at a small distance from a register that is 0. */
static bool is_low(uint64_t address)
{
	return address + LOW_BYTES < 2 * (uint64_t)LOW_BYTES;
}

/* If a frame's caller depends on an unknown register, the step leads to the end or to the lowest
 * memory. */
static int step(struct daemon_target *target, struct failure *why)
{
	int got = symbols_unwind_step(target->unwinder, why);
	bool is_leaf = target->item_count == 1;

	/* A thread in a system call has a caller. */
	if ((got == 0 && is_leaf) ||
	    (got < 0 && why->kind == FAILURE_FAULT && is_low(why->address)))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "unwind without registers");
	return got;
}

/* Find the next VM frame above the unwinder's frame. */
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

/* Whether the walk reaches the VM frame without passing it. */
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

/* Set the unwinder back to an earlier frame. */
static void go_back(struct daemon_target *target, const struct luastate_memory *memory,
		    const struct attach_registers *regs)
{
	if (target->item_count == 1)
		symbols_unwind_begin(target->unwinder, regs, memory->stopped);
	else
		symbols_unwind_begin_caller(target->unwinder, regs, memory->stopped);
}

/* @return Whether the frame pointer is known now; the unwinder is at the same frame. */
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
