/* SPDX-License-Identifier: MIT */
/* What does the sampler's BPF program copy of a thread's native stack, VMs and coroutines? */
#ifndef LUASTATE_BPF_STACKS_BPF_H
#define LUASTATE_BPF_STACKS_BPF_H

#include "luastate/bpf/copy.bpf.h"

/* Indices of 8-byte words in struct pt_regs. Source: Linux v6.1, arch/x86/include/asm/ptrace.h and
 * arch/arm64/include/uapi/asm/ptrace.h; LuaJIT v2.1 src/vm_x64.dasc and src/vm_arm64.dasc. */
enum {
#if defined(__TARGET_ARCH_x86)
	REG_IP = 16,
	REG_SP = 19,
	REG_LUA_BASE = 12, /* rdx */
	REG_LUA_PC = 5,	   /* rbx */
	REG_LUA_VM = 1,	   /* r14 */
	RED_ZONE = 128,
#else
	REG_FP = 29,
	REG_SP = 31,
	REG_LUA_BASE = 19,
	REG_LUA_PC = 21,
	REG_LUA_VM = 22,
	RED_ZONE = 0,
#endif
};

enum {
	NATIVE_MAX = LARGE_MAX,
	STACK_SLACK = 1024,
	STACK_MAX = 66000 * 8, /* LUAI_MAXSTACK, 65500 slots, and LuaJIT's extra slots */
	STACK_BYTES = 8 << 20, /* assumed size of a native stack whose end is unknown */
};

/** The bits of a 64-bit slot that are an object's address. */
#define OBJECT_MASK (((uint64_t)1 << 47) - 1)

SUBPROGRAM int copy_native(struct work *work, const struct luastate_bpf_plan *plan)
{
	uint64_t sp, start, page, end, limit;

	if (!work || !plan)
		return 0;
	sp = work->record.registers[REG_SP];
	limit = plan->native_limit > sp ? plan->native_limit : (uint64_t)-1;
	end = plan->native_end < limit ? plan->native_end : limit;
	if (end <= sp || end - sp > (uint64_t)NATIVE_MAX * 4) {
		end = sp + LUASTATE_NATIVE_FIRST;
	} else if (end - sp > NATIVE_MAX) {
		end = sp + NATIVE_MAX; /* copies the innermost frames only */
		work->record.is_truncated = 1;
	}
	if (end > limit)
		end = limit;
	work->native_end = end;
	if (end - sp > NATIVE_MIDDLE)
		end = sp + NATIVE_MIDDLE;
	/* The stack may begin at this page, and a read that starts below it would fail as a whole.
	 */
	start = (sp - RED_ZONE) & ~(uint64_t)7;
	page = sp & ~(uint64_t)(PAGE - 1);
	if (start < page) {
		copy(work, start, page - start);
		start = page;
	}
	align(work);
	work->native_start = start;
	work->native_offset = work->record.len + sizeof(struct attach_sampler_range);
	copy(work, start, end - start);
	work->native_len =
		work->record.len < work->native_offset ? 0 : work->record.len - work->native_offset;
	return 0;
}

/* Copy the part of the native stack beyond NATIVE_MIDDLE, after the search for C frames. */
SUBPROGRAM int copy_deep_native(struct work *work)
{
	uint64_t start, end;

	if (!work)
		return 0;
	start = work->native_start + work->native_len;
	end = work->native_end;
	if (start < end && end - start < NATIVE_MAX)
		copy_large(work, start, end - start);
	return 0;
}

/** A search for a coroutine in the copy's list. */
struct known_stack {
	const struct work *work;
	uint64_t L;
	bool found;
};

static long look_for_stack(uint32_t i, void *context)
{
	struct known_stack *known = context;
	uint64_t index = i;

	hold(index);
	if (index >= STACKS)
		return 1;
	known->found = known->work->stacks[index].L == known->L;
	return known->found;
}

static uint64_t seen_slot(uint64_t L, uint32_t try)
{
	return ((L * 0x9e3779b97f4a7c15 >> 40) + try) & (SEEN - 1);
}

/* Whether the coroutine is in the copy's list already. A hash table answers nearly always; the list
 * is searched only if an entry did not fit into the table. */
static bool has_stack(struct work *work, uint64_t L)
{
	struct known_stack known = { .work = work, .L = L };

	for (uint32_t i = 0; i < SEEN_TRIED; i++) {
		struct seen *seen = &work->seen[seen_slot(L, i)];

		if (seen->time_ns != work->record.time_ns)
			return false;
		if (seen->L == L)
			return true;
	}
	if (work->has_more_seen)
		repeat(work->stack_count, look_for_stack, &known);
	return known.found;
}

static void note_stack(struct work *work, uint64_t L)
{
	for (uint32_t i = 0; i < SEEN_TRIED; i++) {
		struct seen *seen = &work->seen[seen_slot(L, i)];

		if (seen->time_ns == work->record.time_ns)
			continue;
		seen->time_ns = work->record.time_ns;
		seen->L = L;
		return;
	}
	work->has_more_seen = 1;
}

/* Add a coroutine to the copy's list. The type byte is checked, because stale words look like
 * coroutines too. The coroutine may belong to another VM of the same code. */
SUBPROGRAM int add_stack(struct work *work, const struct luastate_bpf_plan *plan, uint64_t L,
			 uint64_t index)
{
	const struct luastate_bpf_vm *vm;
	uint64_t count;
	uint8_t type;

	hold(index);
	if (!work || !plan || index >= LUASTATE_BPF_VMS || !is_pointer(L) || (L & 7) != 0)
		return 0;
	vm = &plan->vms[index];
	if (has_stack(work, L))
		return 0;
	if (!read_user(work, &type, 1, L + vm->thread_type) || type != vm->thread_type_value)
		return 0;
	count = work->stack_count;
	hold(count);
	if (count >= STACKS) {
		work->record.is_truncated = 1;
		return 0;
	}
	work->stacks[count].L = L;
	work->stacks[count].G = read_word(work, L + vm->global, vm->ref_size);
	work->stacks[count].vm = index;
	work->stack_count = count + 1;
	note_stack(work, L);
	return 1;
}

/* The address of the object in a slot. */
static uint64_t object_of(const struct luastate_bpf_vm *vm, uint64_t slot)
{
	return vm->ref_size == 8 ? slot & OBJECT_MASK : slot & 0xffffffff;
}

/* Copy the header of the trace that the VM notes as running, or as being left. */
static void copy_trace(struct work *work, const struct luastate_bpf_vm *vm, uint64_t G)
{
	uint64_t number = read_word(work, G + vm->state, 4), slot;

	if (!vm->trace_size)
		return;
	if ((int32_t)number == vm->state_exit)
		number = read_word(work, G + vm->parent, 4);
	if ((int32_t)number <= 0 || number >= read_word(work, G + vm->trace_count, 4))
		return;
	slot = read_word(work, G + vm->traces, 8) + number * vm->ref_size;
	copy(work, slot, vm->ref_size);
	copy(work, read_word(work, slot, vm->ref_size), vm->trace_size);
}

/* Copy the state of a VM whose layout is that of the plan's VM @index. */
SUBPROGRAM int copy_vm(struct work *work, const struct luastate_bpf_plan *plan, uint32_t index,
		       uint64_t G)
{
	const struct luastate_bpf_vm *vm;

	if (!work || !plan || index >= LUASTATE_BPF_VMS)
		return 0;
	vm = &plan->vms[index];
	copy(work, G, vm->global_size);
	copy(work, G + vm->parent, vm->parent_size);
	copy_trace(work, vm, G);
	add_stack(work, plan, read_word(work, G + vm->current, vm->ref_size), index);
	return 0;
}

/* Whether the VM is in the plan or was copied before. */
SUBPROGRAM int has_vm(const struct work *work, const struct luastate_bpf_plan *plan, uint64_t G)
{
	if (!work || !plan)
		return 0;
	for (uint32_t i = 0; i < LUASTATE_BPF_VMS && i < plan->vm_count; i++)
		if (plan->vms[i].G == G)
			return 1;
	for (uint32_t i = 0; i < NEW_VMS && i < work->new_count; i++)
		if (work->new_vms[i] == G)
			return 1;
	for (uint32_t i = 0; i < OTHER_VMS && i < work->other_count; i++)
		if (work->other_vms[i] == G)
			return 1;
	return 0;
}

/* Note that a VM from the list of others is copied. @return false if there is no room. */
static bool note_other(struct work *work, uint64_t G)
{
	uint64_t count = work->other_count;

	hold(count);
	if (count >= OTHER_VMS)
		return false;
	work->other_vms[count] = G;
	work->other_count = count + 1;
	return true;
}

/* Copy a VM that the plan does not list: the data that its invariants need, and its current
 * coroutine. The VM may have ended by the time that the copy is decoded. */
SUBPROGRAM int copy_whole_vm(struct work *work, const struct luastate_bpf_plan *plan,
			     uint64_t vm_index, uint64_t G)
{
	const struct luastate_bpf_vm *vm;
	uint64_t main_thread, count;

	hold(vm_index);
	if (!work || !plan || vm_index >= LUASTATE_BPF_VMS)
		return 0;
	count = work->new_count;
	hold(count);
	if (count >= NEW_VMS)
		return 0;
	work->new_vms[count] = G;
	work->new_count = count + 1;
	vm = &plan->vms[vm_index];
	main_thread = G - vm->thread_size;
	copy(work, main_thread, (uint64_t)vm->thread_size + vm->whole_size);
	copy_trace(work, vm, G);
	copy(work, read_word(work, main_thread + vm->stack, vm->ref_size), 8);
	copy(work, object_of(vm, read_word(work, G + vm->registry, 8)), vm->table_size);
	add_stack(work, plan, read_word(work, G + vm->current, vm->ref_size), vm_index);
	return 1;
}

/** A search for a VM in the list of others. */
struct search {
	struct work *work;
	const struct luastate_bpf_plan *plan;
	uint64_t G;
	uint64_t limit;
	uint32_t vm; /* its index in the plan; LUASTATE_BPF_VMS: not in the list */
};

static const struct luastate_bpf_vm *vm_like(const struct luastate_bpf_plan *plan, uint64_t entry)
{
	return &plan->vms[entry & LUASTATE_BPF_VM_MASK];
}

static long look_for_vm(uint32_t i, void *context)
{
	struct search *search = context;
	uint64_t index = i, entry;

	hold(index);
	if (index >= LUASTATE_BPF_OTHERS)
		return 1;
	entry = search->plan->others[index];
	if ((entry & ~(uint64_t)LUASTATE_BPF_VM_MASK) != search->G)
		return 0;
	search->vm = entry & LUASTATE_BPF_VM_MASK;
	return 1;
}

/* Copy a VM that is not among the plan's VMs, but may be in its list of others. */
SUBPROGRAM int copy_other_vm(struct work *work, const struct luastate_bpf_plan *plan,
			     uint32_t vm_index, uint64_t G)
{
	struct search search = { .plan = plan, .G = G, .vm = LUASTATE_BPF_VMS };

	if (!work || !plan)
		return 0;
	repeat(plan->other_count, look_for_vm, &search);
	if (search.vm == LUASTATE_BPF_VMS)
		copy_whole_vm(work, plan, vm_index, G);
	else if (note_other(work, G))
		copy_vm(work, plan, search.vm, G);
	return 1;
}

/* Copy the VM of a coroutine, if it is not copied already. */
SUBPROGRAM int copy_new_vm(struct work *work, const struct luastate_bpf_plan *plan, uint32_t index)
{
	uint64_t G;

	if (!work || !plan || index >= STACKS)
		return 0;
	G = work->stacks[index].G;
	if (is_pointer(G) && (G & 7) == 0 && !has_vm(work, plan, G))
		copy_other_vm(work, plan, work->stacks[index].vm, G);
	return 0;
}

/* VM code, interpreted or compiled, keeps its VM in a register; C functions that do not use that
 * register keep the value. The register is trusted only if the VM's current coroutine refers back
 * to this VM.
 * Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc (DISPATCH), vm_arm64.dasc (GL);
 * src/lj_target_x86.h (RID_DISPATCH), lj_target_arm64.h (RID_GL). */
SUBPROGRAM int copy_running_vm(struct work *work, const struct luastate_bpf_plan *plan,
			       uint32_t index)
{
	const struct luastate_bpf_vm *vm;
	uint64_t G, L;

	if (!work || !plan || index >= LUASTATE_BPF_VMS)
		return 0;
	vm = &plan->vms[index];
	G = work->record.registers[REG_LUA_VM] - vm->register_offset;
	if (!is_pointer(G) || (G & 7) != 0 || has_vm(work, plan, G))
		return 0;
	L = read_word(work, G + vm->current, vm->ref_size);
	if (is_pointer(L) && (L & 7) == 0 && read_word(work, L + vm->global, vm->ref_size) == G)
		copy_other_vm(work, plan, index, G);
	return 0;
}

static long look_at_other(uint32_t i, void *context)
{
	struct search *search = context;
	struct work *work = search->work;
	uint64_t index = i, entry, G, vm_frame;
	const struct luastate_bpf_vm *vm;

	hold(index);
	if (index >= LUASTATE_BPF_OTHERS || !work->reads_left)
		return 1;
	entry = search->plan->others[index];
	G = entry & ~(uint64_t)LUASTATE_BPF_VM_MASK;
	vm = vm_like(search->plan, entry);
	if (!read_word(work, G + vm->compiled_base, vm->ref_size))
		return 0;
	vm_frame = read_word(work, G + vm->current, vm->ref_size);
	vm_frame = read_word(work, vm_frame + vm->vm_frame, 8);
	if (vm_frame < work->native_start || vm_frame >= search->limit ||
	    has_vm(work, search->plan, G))
		return 0;
	if (note_other(work, G))
		copy_vm(work, search->plan, entry & LUASTATE_BPF_VM_MASK, G);
	return 0;
}

/* Copy the VMs that run compiled code on this native stack. They need a search of their own,
 * because no word of the stack shows the C frame below compiled code. */
SUBPROGRAM int copy_compiled_vms(struct work *work, const struct luastate_bpf_plan *plan)
{
	struct search search = { .work = work, .plan = plan };

	if (!work || !plan)
		return 0;
	search.limit = plan->native_limit > work->native_start ? plan->native_limit
							       : work->native_start + STACK_BYTES;
	repeat(plan->other_count, look_at_other, &search);
	return 0;
}

/* The C frame that a word of the native stack shows; 0: none. On x86-64 a return address into the
 * interpreter is right below the frame; on AArch64 a saved frame pointer points into it. */
static uint64_t frame_shown(const struct luastate_bpf_vm *vm, uint64_t address, uint64_t word)
{
#if defined(__TARGET_ARCH_x86)
	return word >= vm->code_start && word < vm->code_end ? address + vm->frame_distance : 0;
#else
	if ((word & 15) != 0 || word <= address || word - address > LUASTATE_FRAME_DISTANCE_MAX)
		return 0;
	return word - vm->frame_distance;
#endif
}

/* The C frame of a thread that is in the interpreter. A moment after its beginning, only the frame
 * shows its coroutine. */
static uint64_t leaf_frame(const struct luastate_bpf_vm *vm, const struct work *work)
{
#if defined(__TARGET_ARCH_x86)
	uint64_t pc = work->record.registers[REG_IP];

	return pc >= vm->code_start && pc < vm->code_end ? work->record.registers[REG_SP] : 0;
#else
	return frame_shown(vm, work->native_start - 8, work->record.registers[REG_FP]);
#endif
}

/* Add the coroutine of a C frame, if it is one. */
static void try_frame(struct scan *scan, uint64_t frame)
{
	const struct luastate_bpf_vm *vm = scan->vm;
	uint64_t previous;

	if (!frame)
		return;
	previous = read_word(scan->work, frame + vm->frame_previous, 8) & ~(uint64_t)7;
	if (previous && (previous <= frame || previous - frame >= LUASTATE_FRAME_DISTANCE_MAX))
		return;
	add_stack(scan->work, scan->plan,
		  read_word(scan->work, frame + vm->frame_thread, vm->ref_size), scan->index);
}

static long look_for_frame(uint32_t i, void *context)
{
	struct scan *scan = context;

	if (i >= scan->count || !scan->work->reads_left)
		return 1;
	try_frame(scan, frame_shown(scan->vm, scan->start + i * 8,
				    copied_word(scan->work, scan->offset + i * 8)));
	return 0;
}

/* Find the interpreter's C frames on the native stack, and add the coroutines that they name. */
SUBPROGRAM int find_frames(struct work *work, const struct luastate_bpf_plan *plan, uint32_t index)
{
	struct scan scan = { .work = work };

	if (!work || !plan || index >= LUASTATE_BPF_VMS)
		return 0;
	scan.plan = plan;
	scan.vm = &plan->vms[index];
	scan.index = index;
	scan.start = work->native_start;
	scan.offset = work->native_offset;
	scan.count = work->native_len / 8;
	try_frame(&scan, leaf_frame(scan.vm, work));
	repeat(NATIVE_WORDS, look_for_frame, &scan);
	return 0;
}

/* A signal handler may run on a stack of its own. The interrupted frames are then on the stack that
 * holds the newest C frame. */
static void copy_other_stack(struct work *work, uint64_t vm_frame)
{
	uint64_t page;

	if (!is_pointer(vm_frame) ||
	    (vm_frame >= work->native_start && vm_frame < work->native_end))
		return;
	page = vm_frame & ~(uint64_t)(PAGE - 1);
	copy(work, page, vm_frame - page + LUASTATE_NATIVE_FIRST);
	for (uint64_t below = PAGE; below <= LUASTATE_OTHER_STACK_BELOW; below += PAGE)
		if (!copy(work, page - below, PAGE))
			break;
}

/* Copy a Lua stack from its start up to @end, the last STACK_TOP bytes last. */
static int copy_slots(struct work *work, uint64_t start, uint64_t end)
{
	uint64_t top = start;

	work->top.used_end = 0;
	if (end - start > STACK_TOP) {
		top = (end - STACK_TOP) & ~(uint64_t)7;
		if (!copy_large(work, start, top - start))
			return 0;
	}
	if (work->record.len > PART_BYTES)
		flush(work);
	align(work);
	work->top.start = top;
	work->top.offset = work->record.len + sizeof(struct attach_sampler_range);
	return copy(work, top, end - top);
}

/* The coroutine that a VM runs. The last answer is kept, because most coroutines share one VM. */
static uint64_t current_of(struct work *work, const struct luastate_bpf_vm *vm, uint64_t G)
{
	if (work->current_G != G) {
		work->current_L = read_word(work, G + vm->current, vm->ref_size);
		work->current_G = G;
	}
	return work->current_L;
}

/* Copy a coroutine's header, and its stack as far as frames reach. */
SUBPROGRAM int copy_stack(struct work *work, const struct luastate_bpf_plan *plan, uint32_t index)
{
	const struct luastate_bpf_vm *vm;
	uint64_t L, at, start, base, own_base, limit, other, end;
	uint64_t vm_index;
	struct stack *stack;

	if (!work || !plan || index >= STACKS)
		return 0;
	stack = &work->stacks[index];
	vm_index = stack->vm;
	hold(vm_index);
	work->top.used_end = 0;
	if (vm_index >= LUASTATE_BPF_VMS)
		return 0;
	if (work->record.len > PART_BYTES)
		flush(work);
	vm = &plan->vms[vm_index];
	L = stack->L;
	if (!copy(work, L, vm->thread_size))
		return 0;
	at = work->record.len - vm->thread_size;
	start = copied_field(work, at + vm->stack, vm->ref_size);
	own_base = base = copied_field(work, at + vm->base, 8);
	limit = copied_field(work, at + vm->limit, vm->ref_size);
	/* The interpreter keeps its base in a register, compiled code keeps it in the global state.
	 */
	other = work->record.registers[REG_LUA_BASE];
	if (other > base && other <= limit)
		base = other;
	if (current_of(work, vm, stack->G) == L) {
		other = read_word(work, stack->G + vm->compiled_base, vm->ref_size);
		if (other > base && other <= limit)
			base = other;
		copy_other_stack(work, copied_field(work, at + vm->vm_frame, 8) & ~(uint64_t)7);
	}
	if (!is_pointer(start) || base < start)
		return 0;
	if (base - start > STACK_MAX - STACK_SLACK) {
		work->record.is_truncated = 1;
		return 0;
	}
	end = base + STACK_SLACK;
	if (end > limit && limit > base)
		end = limit;
	if (!copy_slots(work, start, end)) {
		work->record.is_truncated |= work->record.len >= ATTACH_SAMPLER_BYTES;
		return 0;
	}
	work->top.used_end = base;
	work->top.base = own_base;
	return 1;
}

#endif
