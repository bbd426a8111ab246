/* SPDX-License-Identifier: MIT */
/* What the kernel's side of a tap copies of a thread: its native stack, its VMs, their coroutines.
 */
#ifndef ATTACH_TAP_STACKS_BPF_H
#define ATTACH_TAP_STACKS_BPF_H

#include "attach/tap_copy.bpf.h"

/* Words of struct pt_regs. Source: Linux v6.1, arch/x86/include/asm/ptrace.h and
 * arch/arm64/include/uapi/asm/ptrace.h; LuaJIT v2.1 src/vm_x64.dasc and src/vm_arm64.dasc. */
enum {
#if defined(__TARGET_ARCH_x86)
	REG_SP = 19,
	REG_LUA_BASE = 12, /* rdx */
	REG_LUA_PC = 5,	   /* rbx */
	RED_ZONE = 128,
#else
	REG_FP = 29,
	REG_SP = 31,
	REG_LUA_BASE = 19,
	REG_LUA_PC = 21,
	RED_ZONE = 0,
#endif
};

enum {
	NATIVE_FIRST = 16384,
	NATIVE_MAX = 32768,
	NATIVE_WORDS = 2048, /* looked at for frames of the interpreter */
	STACK_SLACK = 1024,
	STACK_MAX = 32768,
	/* An interrupted frame on another stack than its handler's. */
	OTHER_STACK_BELOW = 2 * PAGE,
	FRAME_DISTANCE_MAX = 64 << 20,
};

/** Of a 64-bit slot so much is the object's address. */
#define OBJECT_MASK (((uint64_t)1 << 47) - 1)

__attribute__((noinline)) int copy_native(struct work *work, const struct attach_tap_plan *plan)
{
	uint64_t sp, start, page, end, limit;

	if (!work || !plan)
		return 0;
	sp = work->record.registers[REG_SP];
	limit = plan->native_limit > sp ? plan->native_limit : (uint64_t)-1;
	end = plan->native_end < limit ? plan->native_end : limit;
	if (end <= sp || end - sp > (uint64_t)NATIVE_MAX * 64) {
		end = sp + NATIVE_FIRST;
	} else if (end - sp > NATIVE_MAX) {
		end = sp + NATIVE_MAX; /* deeper than is copied: its leaf's end */
		work->record.is_cut = 1;
	}
	if (end > limit)
		end = limit;
	align(work);
	/* The stack may begin at this page: a read from below it would fail. */
	start = (sp - RED_ZONE) & ~(uint64_t)7;
	page = sp & ~(uint64_t)(PAGE - 1);
	work->native_start = start < page ? page : start;
	work->native_offset = work->record.len + sizeof(struct tap_range);
	copy(work, work->native_start, end - work->native_start);
	work->native_len =
		work->record.len < work->native_offset ? 0 : work->record.len - work->native_offset;
	if (start < page)
		copy(work, start, page - start);
	return 0;
}

/* Stale words look like coroutines too. One may also be another VM's of the same code. */
__attribute__((noinline)) int add_stack(struct work *work, const struct attach_tap_plan *plan,
					uint64_t L, uint64_t index)
{
	const struct attach_tap_vm *vm;
	uint64_t count;
	uint8_t type;

	hold(index);
	if (!work || !plan || index >= ATTACH_TAP_VMS || !is_pointer(L) || (L & 7) != 0)
		return 0;
	vm = &plan->vms[index];
	if (!read_user(work, &type, 1, L + vm->thread_type) || type != vm->thread_type_value)
		return 0;
	count = work->stack_count;
	hold(count);
	for (uint32_t i = 0; i < STACKS; i++)
		if (i < count && work->stacks[i].L == L)
			return 0;
	if (count >= STACKS) {
		work->record.is_cut = 1;
		return 0;
	}
	work->stacks[count].L = L;
	work->stacks[count].G = read_word(work, L + vm->global, vm->ref_size);
	work->stacks[count].vm = index;
	work->stacks[count].start = work->stacks[count].used_end = 0;
	work->stacks[count].offset = work->stacks[count].len = 0;
	work->stack_count = count + 1;
	return 1;
}

/* The object that a slot refers to. */
static uint64_t object_of(const struct attach_tap_vm *vm, uint64_t slot)
{
	return vm->ref_size == 8 ? slot & OBJECT_MASK : slot & 0xffffffff;
}

/* The header of the trace that is noted as running, or as being left. */
static void copy_trace(struct work *work, const struct attach_tap_vm *vm)
{
	uint64_t number = read_word(work, vm->G + vm->state, 4), slot;

	if (!vm->trace_size)
		return;
	if ((int32_t)number == vm->state_exit)
		number = read_word(work, vm->G + vm->parent, 4);
	if ((int32_t)number <= 0 || number >= read_word(work, vm->G + vm->trace_count, 4))
		return;
	slot = read_word(work, vm->G + vm->traces, 8) + number * vm->ref_size;
	copy(work, slot, vm->ref_size);
	copy(work, read_word(work, slot, vm->ref_size), vm->trace_size);
}

__attribute__((noinline)) int copy_vm(struct work *work, const struct attach_tap_plan *plan,
				      uint32_t index)
{
	const struct attach_tap_vm *vm;

	if (!work || !plan || index >= ATTACH_TAP_VMS)
		return 0;
	vm = &plan->vms[index];
	copy(work, vm->G, vm->global_size);
	copy(work, vm->G + vm->parent, vm->parent_size);
	copy_trace(work, vm);
	add_stack(work, plan, read_word(work, vm->G + vm->current, vm->ref_size), index);
	return 0;
}

/* Whether the VM is copied already. */
static bool has_vm(const struct work *work, const struct attach_tap_plan *plan, uint64_t G)
{
	bool has = false;

	for (uint32_t i = 0; i < ATTACH_TAP_VMS; i++)
		has |= i < plan->vm_count && plan->vms[i].G == G;
	for (uint32_t i = 0; i < NEW_VMS; i++)
		has |= i < work->new_count && work->new_vms[i] == G;
	return has;
}

/* The VM of a coroutine, if it is not in the plan: what its invariants need, and its current
 * coroutine. It may have ended when the copy is looked at. */
__attribute__((noinline)) int copy_new_vm(struct work *work, const struct attach_tap_plan *plan,
					  uint32_t index)
{
	const struct attach_tap_vm *vm;
	uint64_t G, main_thread, vm_index, count;

	if (!work || !plan || index >= STACKS)
		return 0;
	G = work->stacks[index].G;
	vm_index = work->stacks[index].vm;
	count = work->new_count;
	hold(vm_index);
	hold(count);
	if (vm_index >= ATTACH_TAP_VMS || count >= NEW_VMS || !is_pointer(G) || (G & 7) != 0 ||
	    has_vm(work, plan, G))
		return 0;
	work->new_vms[count] = G;
	work->new_count = count + 1;
	vm = &plan->vms[vm_index];
	main_thread = G - vm->thread_size;
	copy(work, main_thread, (uint64_t)vm->thread_size + vm->whole_size);
	copy(work, read_word(work, main_thread + vm->stack, vm->ref_size), 8);
	copy(work, object_of(vm, read_word(work, G + vm->registry, 8)), vm->table_size);
	add_stack(work, plan, read_word(work, G + vm->current, vm->ref_size), vm_index);
	return 1;
}

/* The C frame that a word on the native stack shows, 0 for none: a return address into the
 * interpreter lies right below it, a frame pointer that was saved points into it. */
static uint64_t frame_shown(const struct attach_tap_vm *vm, uint64_t address, uint64_t word)
{
#if defined(__TARGET_ARCH_x86)
	return word >= vm->code_start && word < vm->code_end ? address + vm->frame_distance : 0;
#else
	if ((word & 15) != 0 || word <= address || word - address > FRAME_DISTANCE_MAX)
		return 0;
	return word - vm->frame_distance;
#endif
}

static void try_frame(struct scan *scan, uint64_t address, uint64_t word)
{
	const struct attach_tap_vm *vm = scan->vm;
	uint64_t frame = frame_shown(vm, address, word), previous;

	if (!frame)
		return;
	previous = read_word(scan->work, frame + vm->frame_previous, 8) & ~(uint64_t)7;
	if (previous && (previous <= frame || previous - frame >= FRAME_DISTANCE_MAX))
		return;
	add_stack(scan->work, scan->plan,
		  read_word(scan->work, frame + vm->frame_thread, vm->ref_size), scan->index);
}

static long look_for_frame(uint32_t i, void *context)
{
	struct scan *scan = context;

	if (i >= scan->count || !scan->work->reads_left)
		return 1;
	try_frame(scan, scan->start + i * 8, copied_word(scan->work, scan->offset + i * 8));
	return 0;
}

/* Words of the native stack show C frames of an interpreter, and these name their coroutines. */
__attribute__((noinline)) int find_frames(struct work *work, const struct attach_tap_plan *plan,
					  uint32_t index)
{
	struct scan scan = { .work = work };

	if (!work || !plan || index >= ATTACH_TAP_VMS)
		return 0;
	scan.plan = plan;
	scan.vm = &plan->vms[index];
	scan.index = index;
	scan.start = work->native_start;
	scan.offset = work->native_offset;
	scan.count = work->native_len / 8;
#if !defined(__TARGET_ARCH_x86)
	try_frame(&scan, work->native_start - 8, work->record.registers[REG_FP]);
#endif
	bpf_loop(NATIVE_WORDS, look_for_frame, &scan, 0);
	return 0;
}

/* A signal handler on a stack of its own: the interrupted frames lie where the newest C frame is.
 */
static void copy_other_stack(struct work *work, uint64_t cframe)
{
	uint64_t page;

	if (!is_pointer(cframe) || cframe - work->native_start < work->native_len)
		return;
	page = cframe & ~(uint64_t)(PAGE - 1);
	copy(work, page, cframe - page + NATIVE_FIRST);
	for (uint64_t below = PAGE; below <= OTHER_STACK_BELOW; below += PAGE)
		if (!copy(work, page - below, PAGE))
			break;
}

/* A coroutine's header, and its stack as far as frames reach. */
__attribute__((noinline)) int copy_stack(struct work *work, const struct attach_tap_plan *plan,
					 uint32_t index)
{
	const struct attach_tap_vm *vm;
	uint64_t L, start, base, own_base, limit, other, end;
	uint64_t vm_index;
	struct stack *stack;

	if (!work || !plan || index >= STACKS)
		return 0;
	stack = &work->stacks[index];
	vm_index = stack->vm;
	hold(vm_index);
	if (vm_index >= ATTACH_TAP_VMS)
		return 0;
	vm = &plan->vms[vm_index];
	L = stack->L;
	copy(work, L, vm->thread_size);
	start = read_word(work, L + vm->stack, vm->ref_size);
	own_base = base = read_word(work, L + vm->base, 8);
	limit = read_word(work, L + vm->limit, vm->ref_size);
	/* The interpreter keeps its base in a register, compiled code in the global state. */
	other = work->record.registers[REG_LUA_BASE];
	if (other > base && other <= limit)
		base = other;
	if (read_word(work, stack->G + vm->current, vm->ref_size) == L) {
		other = read_word(work, stack->G + vm->compiled_base, vm->ref_size);
		if (other > base && other <= limit)
			base = other;
		copy_other_stack(work, read_word(work, L + vm->cframe, 8) & ~(uint64_t)7);
	}
	if (!is_pointer(start) || base < start)
		return 0;
	if (base - start > STACK_MAX - STACK_SLACK) {
		work->record.is_cut = 1;
		return 0;
	}
	end = base + STACK_SLACK;
	if (end > limit && limit > base)
		end = limit;
	align(work);
	stack->offset = work->record.len + sizeof(struct tap_range);
	if (!copy(work, start, end - start)) {
		work->record.is_cut |= work->record.len >= TAP_BYTES;
		return 0;
	}
	stack->len = work->record.len - stack->offset;
	stack->start = start;
	stack->used_end = base;
	stack->base = own_base;
	return 1;
}

#endif
