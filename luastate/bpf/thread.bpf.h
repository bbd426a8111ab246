/* SPDX-License-Identifier: MIT */
/* In which order is a thread copied? */
#ifndef LUASTATE_BPF_THREAD_BPF_H
#define LUASTATE_BPF_THREAD_BPF_H

#include "luastate/bpf/functions.bpf.h"

/** The arguments of a copy's steps. */
struct steps {
	struct work *work;
	const struct luastate_bpf_plan *plan;
};

/* The first few items are handled by an unrolled loop. bpf_loop() keeps the verification of a long
 * loop short, but is slower to call. */
enum { FEW = 4 };

static long add_known_stack(uint32_t i, void *context)
{
	struct steps *steps = context;
	uint64_t index = i + FEW, entry;

	hold(index);
	if (index >= LUASTATE_BPF_STACKS)
		return 1;
	entry = steps->plan->stacks[index];
	add_stack(steps->work, steps->plan, entry & ~(uint64_t)LUASTATE_BPF_VM_MASK,
		  entry & LUASTATE_BPF_VM_MASK);
	return 0;
}

static void add_known_stacks(struct steps *steps)
{
	const struct luastate_bpf_plan *plan = steps->plan;

	for (uint32_t i = 0; i < FEW && i < plan->stack_count; i++)
		add_stack(steps->work, plan, plan->stacks[i] & ~(uint64_t)LUASTATE_BPF_VM_MASK,
			  plan->stacks[i] & LUASTATE_BPF_VM_MASK);
	if (plan->stack_count > FEW)
		repeat(plan->stack_count - FEW, add_known_stack, steps);
}

static long copy_vm_of_stack(uint32_t i, void *context)
{
	struct steps *steps = context;

	if (i + FEW >= steps->work->stack_count)
		return 1;
	copy_new_vm(steps->work, steps->plan, i + FEW);
	return 0;
}

/* Each VM may add more coroutines. */
static void copy_vms_of_stacks(struct steps *steps)
{
	for (uint32_t i = 0; i < FEW && i < steps->work->stack_count; i++)
		copy_new_vm(steps->work, steps->plan, i);
	if (steps->work->stack_count > FEW)
		repeat(STACKS, copy_vm_of_stack, steps);
}

static long copy_extra(uint32_t i, void *context)
{
	struct steps *steps = context;
	uint64_t index = i;

	hold(index);
	if (index >= LUASTATE_BPF_EXTRAS)
		return 1;
	copy(steps->work, steps->plan->extras[index].start, steps->plan->extras[index].size);
	return 0;
}

static long copy_coroutine(uint32_t i, void *context)
{
	struct steps *steps = context;

	look_at_clock(steps->work);
	if (copy_stack(steps->work, steps->plan, i + FEW))
		copy_functions(steps->work, steps->plan, i + FEW);
	return 0;
}

static void copy_coroutines(struct steps *steps)
{
	for (uint32_t i = 0; i < FEW && i < steps->work->stack_count; i++)
		if (copy_stack(steps->work, steps->plan, i))
			copy_functions(steps->work, steps->plan, i);
	if (steps->work->stack_count > FEW)
		repeat(steps->work->stack_count - FEW, copy_coroutine, steps);
}

static void copy_all(struct work *work, const struct luastate_bpf_plan *plan)
{
	struct steps steps = { .work = work, .plan = plan };
	uint64_t pc;

	copy_native(work, plan);
	for (uint32_t i = 0; i < LUASTATE_BPF_VMS && i < plan->vm_count; i++)
		find_frames(work, plan, i);
	if (work->native_end > work->native_start + work->native_len)
		copy_deep_native(work);
	for (uint32_t i = 0; i < LUASTATE_BPF_VMS && i < plan->vm_count; i++)
		copy_vm(work, plan, i, plan->vms[i].G);
	for (uint32_t i = 0; plan->roams && i < LUASTATE_BPF_VMS && i < plan->vm_count; i++)
		copy_running_vm(work, plan, i);
	if (plan->roams && plan->other_count)
		copy_compiled_vms(work, plan);
	add_known_stacks(&steps);
	copy_vms_of_stacks(&steps);
	/* The position may be a return address that was just loaded: its call is the instruction
	 * before it. */
	pc = work->record.registers[REG_LUA_PC];
	if ((pc & 3) == 0)
		copy(work, pc - 4, 4);
	if (plan->extra_count)
		repeat(plan->extra_count, copy_extra, &steps);
	copy_coroutines(&steps);
}

/* Copy a thread whose registers, cookie and time the record has. */
static void copy_thread(struct work *work, const struct luastate_bpf_plan *plan)
{
	work->record.len = work->has_range = work->last_range = 0;
	work->stack_count = work->new_count = work->other_count = work->is_lost = 0;
	work->record.part = work->record.has_more = 0;
	work->record.is_truncated = work->record.is_late = 0;
	work->last_name = 0;
	work->slots_left = RECORD_SLOTS;
	work->reads_left = READS;
	work->end_ns = work->record.time_ns + plan->head.budget_ns;
	work->current_G = work->has_more_seen = 0;
	work->function_count = 0;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		work->functions[i] = 0;
	copy_all(work, plan);
	if (!work->reads_left && !work->record.is_late)
		work->record.is_truncated = 1;
	work->record.took_ns = now_ns() - work->record.time_ns;
	if (!work->is_lost && !hand_over(work, record_len(work)))
		work->is_lost = 1;
}

#endif
