/* SPDX-License-Identifier: MIT */
/*
 * The kernel's side of a tap: at each tick of a thread's processor time, while the thread stands in
 * the timer's interrupt, copy its registers, its native stack, the state of its VMs, and its
 * coroutines with the functions on their stacks.
 *
 * Only memory that is there is copied: nothing is paged in. What cannot be read, or has no room, is
 * left out; whoever decodes the copy finds it missing.
 *
 * Source: bpf-helpers(7); Linux v6.1, kernel/events/core.c (perf_swevent_hrtimer), for the tick's
 * place; LuaJIT v2.1 src/lj_obj.h and src/lj_frame.h, for what is followed.
 */
#include "attach/tap_functions.bpf.h"

static void take_registers(struct work *work)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	const void *registers = (const void *)bpf_task_pt_regs(task);

	bpf_probe_read_kernel(work->record.registers, sizeof(work->record.registers), registers);
}

/* A call for each of some, of which there may be many: not one behind the other in the code. */
#define each(index, limit, count)                                      \
	_Pragma("clang loop unroll(disable)") for (uint32_t index = 0; \
						   index < (limit) && index < (count); index++)

static void copy_all(struct work *work, const struct attach_tap_plan *plan)
{
	uint64_t pc;

	copy_native(work, plan);
	each(i, ATTACH_TAP_VMS, plan->vm_count) find_frames(work, plan, i);
	copy_deep_native(work);
	each(i, ATTACH_TAP_VMS, plan->vm_count) copy_vm(work, plan, i, plan->vms[i].G);
	each(i, ATTACH_TAP_VMS, plan->vm_count) copy_running_vm(work, plan, i);
	if (plan->other_count)
		copy_compiled_vms(work, plan);
	each(i, ATTACH_TAP_STACKS, plan->stack_count)
		add_stack(work, plan, plan->stacks[i] & ~(uint64_t)ATTACH_TAP_VM_MASK,
			  plan->stacks[i] & ATTACH_TAP_VM_MASK);
	each(i, STACKS, work->stack_count) copy_new_vm(work, plan, i);
	/* The call before the position, in case that is a return address just loaded. */
	pc = work->record.registers[REG_LUA_PC];
	if ((pc & 3) == 0)
		copy(work, pc - 4, 4);
	each(i, ATTACH_TAP_EXTRAS, plan->extra_count)
		copy(work, plan->extras[i].start, plan->extras[i].size);
	each(i, STACKS, work->stack_count)
	{
		if (work->record.len > PART_BYTES)
			flush(work);
		if (copy_stack(work, plan, i))
			copy_functions(work, plan, i);
	}
}

SEC("perf_event")
int tap_tick(void *context)
{
	uint32_t cpu = bpf_get_smp_processor_id(), slot;
	uint64_t cookie = bpf_get_attach_cookie(context), len;
	struct attach_tap_plan *plan;
	struct work *work;

	slot = (uint32_t)cookie & (ATTACH_TAP_THREADS - 1);
	plan = bpf_map_lookup_elem(&plans, &slot);
	work = bpf_map_lookup_elem(&works, &cpu);
	if (!plan || !work || plan->cookie != cookie)
		return 0;
	if (plan->tick_ns) {
		plan->passed_ns += plan->tick_ns;
		if (plan->passed_ns < plan->period_ns)
			return 0;
		plan->passed_ns -= plan->period_ns;
	}
	work->record.time_ns = bpf_ktime_get_ns();
	if (work->record.time_ns < plan->rest_ns) {
		__sync_fetch_and_add(&plan->rested, 1);
		return 0;
	}
	work->record.cookie = cookie;
	work->record.lost = plan->lost;
	work->record.len = work->has_range = work->last_range = 0;
	work->stack_count = work->new_count = work->other_count = work->is_lost = 0;
	work->record.processor = cpu;
	work->record.part = work->record.has_more = 0;
	work->record.is_cut = 0;
	work->last_name = 0;
	work->slots_left = RECORD_SLOTS;
	work->reads_left = READS;
	work->function_count = 0;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		work->functions[i] = 0;
	take_registers(work);
	copy_all(work, plan);
	if (!work->reads_left)
		work->record.is_cut = 1;
	work->record.took_ns = bpf_ktime_get_ns() - work->record.time_ns;
	len = work->record.len;
	hold(len);
	if (len > sizeof(work->record.bytes))
		len = sizeof(work->record.bytes);
	if (work->is_lost || bpf_ringbuf_output(&records, &work->record,
						__builtin_offsetof(struct tap_record, bytes) + len,
						BPF_RB_NO_WAKEUP) != 0)
		__sync_fetch_and_add(&plan->lost, 1);
	return 0;
}

/* Without it the kernel gives no memory of a program to the program. */
const char terms[] SEC("license") = "Dual MIT/GPL";
