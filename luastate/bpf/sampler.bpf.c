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
#include "luastate/bpf/thread.bpf.h"

static void take_registers(struct work *work)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	const void *registers = (const void *)bpf_task_pt_regs(task);

	bpf_probe_read_kernel(work->record.registers, sizeof(work->record.registers), registers);
}

SEC("perf_event")
int sampler_tick(void *context)
{
	uint32_t cpu = bpf_get_smp_processor_id(), slot;
	uint64_t cookie = bpf_get_attach_cookie(context);
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
	work->record.time_ns = now_ns();
	if (work->record.time_ns < plan->head.rest_ns) {
		__sync_fetch_and_add(&plan->head.skipped, 1);
		return 0;
	}
	work->record.cookie = cookie;
	work->record.lost = plan->head.lost;
	work->record.processor = cpu;
	take_registers(work);
	copy_thread(work, plan);
	if (work->is_lost)
		__sync_fetch_and_add(&plan->head.lost, 1);
	return 0;
}

/* The kernel lets a program read memory only under a licence that is compatible with the GPL. */
const char terms[] SEC("license") = "Dual MIT/GPL";
