/* SPDX-License-Identifier: MIT */
/*
 * Which VM work does the running Lua code trigger: does the VM collect garbage, or compile?
 *
 * The VM's state shows this until the work is done, or until the work calls Lua or a C function,
 * such as a finalizer. After such a call the state says C, although the collector continues.
 *
 * While a trace is left, the compiler notes the trace and the exit. It does this soon after the
 * state changes, and long before it clears jit_base. In between, the numbers belong to an earlier
 * exit, unless registers hold the same numbers.
 *
 * Source: LuaJIT v2.1 (1ee778a4) src/lj_gc.c (lj_gc_step, gc_onestep), src/lj_trace.c (trace_state,
 * lj_trace_exit), src/vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc (vm_exit_handler, vm_returnc).
 */
#include "luastate/stack/vm_work.h"

#include "luastate/arch/arch.h"
#include "luastate/trace/trace.h"
#include "luastate/vm/choose_layout.h"
#include "luastate/vm/vm_internal.h"

enum {
	/* TraceNo1 and the number of a trace's snapshots have 16 bits (lj_jit.h). */
	NUMBERS_END = 65536,
};

static enum luastate_vm_work_kind kind_of(const struct luastate_layout *layout, int vmstate)
{
	const struct {
		int32_t state;
		enum luastate_vm_work_kind kind;
	} kinds[] = {
		{ layout->vmst_gc, LUASTATE_VM_WORK_GC },
		{ layout->vmst_exit, LUASTATE_VM_WORK_EXIT },
		{ layout->vmst_record, LUASTATE_VM_WORK_RECORD },
		{ layout->vmst_opt, LUASTATE_VM_WORK_OPT },
		{ layout->vmst_asm, LUASTATE_VM_WORK_ASM },
	};

	for (size_t i = 0; vmstate < 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].state == ~vmstate)
			return kinds[i].kind;
	return LUASTATE_VM_WORK_NONE;
}

static enum luastate_gc_phase read_phase(const struct walk *walk)
{
	const struct luastate_vm *vm = walk->vm;
	uint64_t at = vm->G + (uint64_t)vm->layout->global_State_gc_state;
	uint8_t phase;
	struct failure why;

	if (vm->layout->global_State_gc_state == LAYOUT_ABSENT ||
	    state_read(walk->stopped, at, &phase, 1, &why) != 0 || phase >= LUASTATE_GC_PHASES)
		return LUASTATE_GC_PAUSE;
	return (enum luastate_gc_phase)phase;
}

/* Builds with these numbers at other offsets may look the same until a VM has a trace. A trace
 * that was freed since the stop shows nothing. */
static bool is_proven(const struct walk *walk, uint32_t trace)
{
	struct luastate *state = walk->state;
	const struct luastate_vm *vm = walk->vm;
	const struct state_view view = state_view_of(state, walk->memory, vm);
	struct failure why;

	if (state->proven == vm->layout && !state->thorough)
		return true;
	if (!trace_get(&view, trace, &why)) {
		state_reconsider_layout(state, walk->reader, vm->G);
		return false;
	}
	state->proven = vm->layout;
	return true;
}

static void read_exit(const struct walk *walk, struct luastate_vm_work *work)
{
	const struct luastate_vm *vm = walk->vm;
	const struct luastate_vm_frame *newest = &walk->vm_frames[0];
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J, jit_base;
	uint32_t trace, exit;
	struct failure why;

	if (!state_has_compiler(layout))
		return;
	if (state_read(walk->stopped, J + (uint64_t)layout->jit_State_parent, &trace, 4, &why) ||
	    state_read(walk->stopped, J + (uint64_t)layout->jit_State_exitno, &exit, 4, &why) ||
	    state_read_ref(layout, walk->stopped, vm->G + (uint64_t)layout->global_State_jit_base,
			   &jit_base, &why))
		return;
	if (jit_base && !(newest->leaf && state_arch_holds_exit(&newest->frame, trace, exit)))
		return;
	if (trace == 0 || trace >= NUMBERS_END || exit >= NUMBERS_END || !is_proven(walk, trace))
		return;
	work->trace = trace;
	work->exit = exit;
}

static bool is_of_vm(const struct walk *walk, const struct luastate_vm_frame *vm_frame)
{
	struct failure why;

	return vm_frame->L &&
	       state_sample_vm_of(walk->state, walk->reader, vm_frame->L, &why) == walk->vm;
}

/* Find the VM frame of the innermost Lua frames, known or not. The compiler has newer VM frames
 * of its own, without Lua frames. If the innermost Lua frames belong to another VM, find this
 * VM's newest VM frame. @return the number of VM frames if it has none. */
static unsigned find_owner(const struct walk *walk)
{
	const struct luastate_chain *chain = walk->chain;
	unsigned count = (unsigned)walk->vm_frame_count, newest = 0, run = count;

	while (newest < count && !is_of_vm(walk, &walk->vm_frames[newest]))
		newest++;
	for (size_t i = 0; i < chain->count; i++)
		if (chain->frames[i].owner < run)
			run = chain->frames[i].owner;
	for (unsigned i = 0; i < run && i < LUASTATE_VM_FRAMES_MAX; i++)
		if (chain->lost[i])
			run = i;
	return run < count && is_of_vm(walk, &walk->vm_frames[run]) ? run : newest;
}

void walk_read_vm_work(struct walk *walk)
{
	const struct luastate_vm *vm = walk->vm;
	struct luastate_vm_work work = { 0 };
	struct failure why;
	int vmstate;

	if (!vm || luastate_read_vmstate(walk->state, walk->stopped, vm->G, &vmstate, &why) != 0)
		return;
	work.kind = kind_of(vm->layout, vmstate);
	if (work.kind == LUASTATE_VM_WORK_NONE)
		return;
	work.owner = find_owner(walk);
	if (work.owner == walk->vm_frame_count)
		return;
	if (work.kind == LUASTATE_VM_WORK_GC)
		work.phase = read_phase(walk);
	if (work.kind == LUASTATE_VM_WORK_EXIT)
		read_exit(walk, &work);
	walk->chain->work = work;
}
