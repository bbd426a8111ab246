/* SPDX-License-Identifier: MIT */
/* What does the sampler's BPF program copy at a tick?
 *
 * A tick interrupts the thread when its timer of processor time expires. The program copies the
 * thread's registers, its native stack, the state of its VMs, and its coroutines with the functions
 * on their stacks.
 *
 * It copies only memory that is present, and pages nothing in. Memory that cannot be read or finds
 * no room is left out; the decoder finds it missing.
 *
 * Source: bpf-helpers(7); Linux v6.1, kernel/events/core.c (perf_swevent_hrtimer), for the context
 * of a tick; LuaJIT v2.1 src/lj_obj.h and src/lj_frame.h, for the structures.
 */
#include "luastate/bpf/functions.bpf.h"

static void take_registers(struct work *work)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	const void *registers = (const void *)bpf_task_pt_regs(task);

	bpf_probe_read_kernel(work->record.registers, sizeof(work->record.registers), registers);
}

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
		bpf_loop(plan->stack_count - FEW, add_known_stack, steps, 0);
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
		bpf_loop(STACKS, copy_vm_of_stack, steps, 0);
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
		bpf_loop(steps->work->stack_count - FEW, copy_coroutine, steps, 0);
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
		bpf_loop(plan->extra_count, copy_extra, &steps, 0);
	copy_coroutines(&steps);
}

SEC("perf_event")
int sampler_tick(void *context)
{
	uint32_t cpu = bpf_get_smp_processor_id(), slot;
	uint64_t cookie = bpf_get_attach_cookie(context), len;
	struct luastate_bpf_plan *plan;
	struct work *work;

	slot = (uint32_t)cookie & (ATTACH_SAMPLER_THREADS - 1);
	plan = bpf_map_lookup_elem(&plans, &slot);
	work = bpf_map_lookup_elem(&works, &cpu);
	if (!plan || !work || plan->head.cookie != cookie)
		return 0;
	if (plan->head.tick_ns) {
		plan->head.passed_ns += plan->head.tick_ns;
		if (plan->head.passed_ns < plan->head.period_ns)
			return 0;
		plan->head.passed_ns -= plan->head.period_ns;
	}
	work->record.time_ns = bpf_ktime_get_ns();
	if (work->record.time_ns < plan->head.rest_ns) {
		__sync_fetch_and_add(&plan->head.skipped, 1);
		return 0;
	}
	work->record.cookie = cookie;
	work->record.lost = plan->head.lost;
	work->record.len = work->has_range = work->last_range = 0;
	work->stack_count = work->new_count = work->other_count = work->is_lost = 0;
	work->record.processor = cpu;
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
	take_registers(work);
	copy_all(work, plan);
	if (!work->reads_left && !work->record.is_late)
		work->record.is_truncated = 1;
	work->record.took_ns = bpf_ktime_get_ns() - work->record.time_ns;
	len = work->record.len;
	hold(len);
	if (len > sizeof(work->record.bytes))
		len = sizeof(work->record.bytes);
	if (work->is_lost ||
	    bpf_ringbuf_output(&records, &work->record,
			       __builtin_offsetof(struct attach_sampler_record, bytes) + len,
			       BPF_RB_NO_WAKEUP) != 0)
		__sync_fetch_and_add(&plan->head.lost, 1);
	return 0;
}

/* The kernel lets a program read memory only under a licence that is compatible with the GPL. */
const char terms[] SEC("license") = "Dual MIT/GPL";
