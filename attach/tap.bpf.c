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
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "attach/tap_record.h"

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
	STACKS = 16,	     /* coroutines in one copy */
	NEW_VMS = 2,	     /* that are not in the plan */
	STACK_SLACK = 1024,
	STACK_MAX = 32768,
	CONSTANTS = 24, /* of a new prototype */
	CONSTANT_BYTES = 40,
	PROTO_MAX = 8192,
	NAME_BYTES = 128,
	/* An interrupted frame on another stack than its handler's. */
	OTHER_STACK_BELOW = 8192,
	STACK_SLOTS = 512,   /* looked at for functions in one stack */
	RECORD_SLOTS = 2048, /* and in all together */
	FUNCTIONS = 8,	     /* the last ones that were copied are not copied again; a power of 2 */
	FRAME_DISTANCE_MAX = 64 << 20,
	PAGE = 4096,
	POINTER_MIN = 4096,
	/* Without GC64 all objects lie below it, and tags and most numbers above. */
	LOW_MEMORY_END = 0x7fffffff,
	LINK_DISTANCE_MAX = 66000 * 8,
};

/** Behind user space. */
#if defined(__TARGET_ARCH_x86)
#define POINTER_END ((uint64_t)1 << 47)
#else
#define POINTER_END ((uint64_t)1 << 48)
#endif
/** Of a 64-bit slot so much is the object's address. */
#define OBJECT_MASK (((uint64_t)1 << 47) - 1)

/** Keep the compiler from computing a bounded value anew from what it was bounded by. */
#define hold(value) __asm__ volatile("" : "+r"(value))

/** A coroutine that is to be copied. */
struct stack {
	uint64_t L, G;
	uint64_t start, used_end; /* 0: could not be copied */
	uint64_t base;		  /* that the coroutine has noted, at or below used_end */
	uint32_t vm, offset;	  /* of its bytes in the record */
	uint32_t len, unused;
};

/** One processor's place to put a record together. */
struct work {
	struct tap_record record;
	struct stack stacks[STACKS];
	uint32_t stack_count, native_offset, native_len, new_count;
	uint64_t new_vms[NEW_VMS];
	uint32_t has_range, last_range;
	uint64_t native_start, last_name;
	uint32_t slots_left, function_count;
	uint64_t functions[FUNCTIONS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ATTACH_TAP_THREADS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct attach_tap_plan);
} plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ATTACH_TAP_KNOWN);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, uint64_t);
} known_protos SEC(".maps");

/* As large as there are processors, which is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} works SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

static bool is_pointer(uint64_t value)
{
	return value >= POINTER_MIN && value < POINTER_END;
}

static uint64_t read_word(uint64_t address, uint32_t size)
{
	uint64_t word = 0;

	if (size == 4)
		bpf_probe_read_user(&word, 4, (void *)address);
	else
		bpf_probe_read_user(&word, 8, (void *)address);
	return word;
}

/* One read of at most a piece. @return whether all of it is there. */
__attribute__((noinline)) int copy_piece(struct work *work, uint64_t start, uint64_t len)
{
	struct tap_record *record;
	struct tap_range *range;
	uint64_t at, last;

	if (!work)
		return 0;
	record = &work->record;
	at = record->len;
	last = work->last_range;
	hold(at);
	hold(last);
	if (at >= TAP_BYTES || last >= TAP_BYTES || len > TAP_PIECE || !is_pointer(start))
		return 0;
	hold(len);
	if (len == 0)
		return 0;
	range = (struct tap_range *)(record->bytes + (last & ~(uint64_t)7));
	/* One that goes on where the last one ended is the same range. */
	if (work->has_range && range->start + range->len == start &&
	    last + sizeof(*range) + range->len == at) {
		if (bpf_probe_read_user(record->bytes + at, len, (void *)start) != 0)
			return 0;
		range->len += len;
		record->len = at + len;
		return 1;
	}
	range = (struct tap_range *)(record->bytes + (at & ~(uint64_t)7));
	if (bpf_probe_read_user(range + 1, len, (void *)start) != 0)
		return 0;
	range->start = start;
	range->len = len;
	range->unused = 0;
	work->has_range = 1;
	work->last_range = at;
	record->len = at + sizeof(*range) + len;
	return 1;
}

/* Ranges begin at multiples of 8. */
static void align(struct work *work)
{
	work->record.len = (work->record.len + 7) & ~7u;
}

/* A range as far as it is there: where not all of it is, page by page. */
__attribute__((noinline)) int copy(struct work *work, uint64_t start, uint64_t size)
{
	uint64_t left = size;

	if (!work)
		return 0;
	align(work);
	work->has_range = 0; /* its bytes begin behind a head of their own */
	for (int i = 0; i < 4 && left; i++) {
		uint32_t part = left < TAP_PIECE ? (uint32_t)left : TAP_PIECE;

		if (!copy_piece(work, start, part))
			break;
		start += part;
		left -= part;
	}
	for (int i = 0; i < 8 && left; i++) {
		uint32_t part = PAGE - (start & (PAGE - 1));

		if (left < part)
			part = (uint32_t)left;
		if (!copy_piece(work, start, part))
			break;
		start += part;
		left -= part;
	}
	return left == 0;
}

__attribute__((noinline)) int copy_native(struct work *work, const struct attach_tap_plan *plan)
{
	uint64_t sp, end, limit;

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
	work->native_start = (sp - RED_ZONE) & ~(uint64_t)7;
	work->native_offset = work->record.len + sizeof(struct tap_range);
	copy(work, work->native_start, end - work->native_start);
	work->native_len =
		work->record.len < work->native_offset ? 0 : work->record.len - work->native_offset;
	return 0;
}

/* Stale words look like coroutines too. One may also be another VM's of the same code. */
__attribute__((noinline)) int add_stack(struct work *work, const struct attach_tap_plan *plan,
					uint64_t L, uint64_t index)
{
	const struct attach_tap_vm *vm;
	uint64_t count;
	uint8_t type = 0;

	hold(index);
	if (!work || !plan || index >= ATTACH_TAP_VMS || !is_pointer(L) || (L & 7) != 0)
		return 0;
	vm = &plan->vms[index];
	bpf_probe_read_user(&type, 1, (void *)(L + vm->thread_type));
	if (type != vm->thread_type_value)
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
	work->stacks[count].G = read_word(L + vm->global, vm->ref_size);
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
	uint64_t number = read_word(vm->G + vm->state, 4), slot;

	if ((int32_t)number == vm->state_exit)
		number = read_word(vm->G + vm->parent, 4);
	if ((int32_t)number <= 0 || number >= read_word(vm->G + vm->trace_count, 4))
		return;
	slot = read_word(vm->G + vm->traces, 8) + number * vm->ref_size;
	copy(work, slot, vm->ref_size);
	copy(work, read_word(slot, vm->ref_size), vm->trace_size);
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
	add_stack(work, plan, read_word(vm->G + vm->current, vm->ref_size), index);
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
	copy(work, read_word(main_thread + vm->stack, vm->ref_size), 8);
	copy(work, object_of(vm, read_word(G + vm->registry, 8)), vm->table_size);
	add_stack(work, plan, read_word(G + vm->current, vm->ref_size), vm_index);
	return 1;
}

static uint64_t copied_word(const struct work *work, uint64_t at)
{
	hold(at);
	if (at >= TAP_BYTES)
		return 0;
	return *(const uint64_t *)(work->record.bytes + (at & (TAP_BYTES - 8)));
}

/** A walk over copied words. */
struct scan {
	struct work *work;
	const struct attach_tap_plan *plan;
	const struct attach_tap_vm *vm;
	uint64_t start;		/* of the words, in the thread */
	uint32_t offset, count; /* in the record; words */
	uint32_t index;		/* of the VM */
};

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
	previous = read_word(frame + vm->frame_previous, 8) & ~(uint64_t)7;
	if (previous && (previous <= frame || previous - frame >= FRAME_DISTANCE_MAX))
		return;
	add_stack(scan->work, scan->plan, read_word(frame + vm->frame_thread, vm->ref_size),
		  scan->index);
}

static long look_for_frame(uint32_t i, void *context)
{
	struct scan *scan = context;

	if (i >= scan->count)
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
	if (!is_pointer(cframe) || cframe - work->native_start < work->native_len)
		return;
	copy(work, cframe - OTHER_STACK_BELOW, OTHER_STACK_BELOW + NATIVE_FIRST);
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
	start = read_word(L + vm->stack, vm->ref_size);
	own_base = base = read_word(L + vm->base, 8);
	limit = read_word(L + vm->limit, vm->ref_size);
	/* The interpreter keeps its base in a register, compiled code in the global state. */
	other = work->record.registers[REG_LUA_BASE];
	if (other > base && other <= limit)
		base = other;
	if (read_word(stack->G + vm->current, vm->ref_size) == L) {
		other = read_word(stack->G + vm->compiled_base, vm->ref_size);
		if (other > base && other <= limit)
			base = other;
		copy_other_stack(work, read_word(L + vm->cframe, 8) & ~(uint64_t)7);
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

/* @return whether the slot can be a frame's function. */
static bool read_function(const struct scan *scan, uint32_t at, uint64_t *ret_function)
{
	uint64_t function = copied_word(scan->work, at);

	if (scan->vm->ref_size == 8) {
		if ((int32_t)((int64_t)function >> 47) != scan->vm->function_tag)
			return false;
		function &= OBJECT_MASK;
	} else {
		function &= 0xffffffff;
		if (function >= LOW_MEMORY_END)
			return false;
	}
	*ret_function = function;
	return (function & 7) == 0 && is_pointer(function);
}

/* @return whether what belongs to that slot can be a frame's link. */
static bool has_link(const struct scan *scan, uint32_t at)
{
	uint64_t link;

	if (scan->vm->ref_size == 8) {
		link = copied_word(scan->work, at + 8);
	} else {
		link = copied_word(scan->work, at) >> 32;
		if (link >= LOW_MEMORY_END)
			return false;
	}
	return (link & 3) == 0 ? is_pointer(link) : link < LINK_DISTANCE_MAX;
}

/** The constants of a prototype. */
struct constants {
	struct work *work;
	uint64_t end; /* references lie below */
	uint32_t count, ref_size, string_size;
};

static long copy_constant(uint32_t i, void *context)
{
	struct constants *constants = context;
	uint64_t at = constants->end - (uint64_t)constants->ref_size * (i + 1);

	if (i >= constants->count || constants->work->record.len >= TAP_BYTES)
		return 1;
	copy(constants->work, read_word(at, constants->ref_size),
	     constants->string_size + CONSTANT_BYTES);
	return 0;
}

/* A prototype that is not known is copied whole, with the strings that name what it calls: a moment
 * later it may be garbage. Of others what tells them from others. */
__attribute__((noinline)) int copy_proto(struct work *work, const struct attach_tap_plan *plan,
					 uint32_t vm_index, uint64_t function)
{
	struct constants constants = { .work = work };
	const struct attach_tap_vm *vm;
	uint64_t proto, name, lines, size, key, *known;
	uint32_t place;
	uint8_t kind = 1;

	if (!work || !plan || vm_index >= ATTACH_TAP_VMS)
		return 0;
	vm = &plan->vms[vm_index];
	bpf_probe_read_user(&kind, 1, (void *)(function + vm->function_kind));
	if (kind != 0 || !vm->proto_size)
		return 0;
	proto = read_word(function + vm->function_code, vm->ref_size) - vm->proto_size;
	size = read_word(proto + vm->proto_bytes, 4);
	name = read_word(proto + vm->proto_name, vm->ref_size);
	place = attach_tap_known_place(plan->salt, proto);
	known = bpf_map_lookup_elem(&known_protos, &place);
	key = attach_tap_known_key(plan->salt, proto, read_word(name + vm->string_hash, 4), size,
				   read_word(proto + vm->proto_line, 4));
	if (known && *known == key) {
		copy(work, proto, vm->proto_size);
		lines = read_word(proto + vm->proto_lines, vm->ref_size);
		if (lines > proto && lines < proto + size)
			copy(work, lines,
			     proto + size - lines < vm->lines_size ? proto + size - lines
								   : vm->lines_size);
		if (name != work->last_name)
			copy(work, name, vm->string_size);
		work->last_name = name;
		return 0;
	}
	copy(work, proto, size < PROTO_MAX ? size : PROTO_MAX);
	/* The string may end where its page does. */
	if (!copy(work, name, vm->string_size + NAME_BYTES))
		copy(work, name, vm->string_size);
	constants.end = read_word(proto + vm->proto_constants, vm->ref_size);
	constants.count = read_word(proto + vm->proto_constant_count, 4);
	constants.ref_size = vm->ref_size;
	constants.string_size = vm->string_size;
	bpf_loop(CONSTANTS, copy_constant, &constants, 0);
	return 0;
}

static void copy_function(struct scan *scan, uint64_t function)
{
	struct work *work = scan->work;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		if (work->functions[i] == function)
			return;
	work->functions[work->function_count++ & (FUNCTIONS - 1)] = function;
	copy(work, function, scan->vm->function_size);
	copy_proto(scan->work, scan->plan, scan->index, function);
}

static long look_for_function(uint32_t i, void *context)
{
	struct scan *scan = context;
	uint32_t at = scan->offset - 8 * i;
	uint64_t function;

	if (i >= scan->count || !scan->work->slots_left || scan->work->record.len >= TAP_BYTES)
		return 1;
	scan->work->slots_left--;
	if (read_function(scan, at, &function) && has_link(scan, at))
		copy_function(scan, function);
	return 0;
}

/* The frame that is entered or left has no link yet, or not any more. */
static void copy_entered(struct scan *scan, const struct stack *stack, uint64_t base)
{
	uint64_t distance = base - stack->start, function;

	if (base >= stack->start && distance >= 2 * scan->vm->ref_size &&
	    read_function(scan, stack->offset + (uint32_t)distance - 2 * scan->vm->ref_size,
			  &function))
		copy_function(scan, function);
}

/* The functions of a stack's frames, from its leaf on: they may be garbage a moment later. */
__attribute__((noinline)) int copy_functions(struct work *work, const struct attach_tap_plan *plan,
					     uint32_t index)
{
	struct scan scan = { .work = work };
	struct stack *stack;
	uint64_t vm_index;
	uint32_t used;

	if (!work || !plan || index >= STACKS)
		return 0;
	stack = &work->stacks[index];
	vm_index = stack->vm;
	hold(vm_index);
	if (vm_index >= ATTACH_TAP_VMS || !stack->used_end)
		return 0;
	scan.plan = plan;
	scan.vm = &plan->vms[vm_index];
	scan.index = vm_index;
	used = (uint32_t)(stack->used_end - stack->start);
	scan.offset = stack->offset + used - 2 * scan.vm->ref_size;
	scan.count = used < 2 * scan.vm->ref_size ? 0 : (used - 2 * scan.vm->ref_size) / 8 + 1;
	copy_entered(&scan, stack, stack->used_end);
	copy_entered(&scan, stack, stack->base);
	bpf_loop(STACK_SLOTS, look_for_function, &scan, 0);
	return 0;
}

static void take_registers(struct work *work)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	const void *registers = (const void *)bpf_task_pt_regs(task);

	bpf_probe_read_kernel(work->record.registers, sizeof(work->record.registers), registers);
}

static void copy_all(struct work *work, const struct attach_tap_plan *plan)
{
	uint64_t pc;

	copy_native(work, plan);
	for (uint32_t i = 0; i < ATTACH_TAP_VMS && i < plan->vm_count; i++)
		copy_vm(work, plan, i);
	for (uint32_t i = 0; i < ATTACH_TAP_VMS && i < plan->vm_count; i++)
		find_frames(work, plan, i);
	for (uint32_t i = 0; i < ATTACH_TAP_STACKS && i < plan->stack_count; i++)
		add_stack(work, plan, plan->stacks[i], plan->stack_vms[i]);
	for (uint32_t i = 0; i < STACKS && i < work->stack_count; i++)
		copy_new_vm(work, plan, i);
	for (uint32_t i = 0; i < STACKS && i < work->stack_count; i++)
		copy_stack(work, plan, i);
	/* The call before the position, in case that is a return address just loaded. */
	pc = work->record.registers[REG_LUA_PC];
	if ((pc & 3) == 0)
		copy(work, pc - 4, 4);
	for (uint32_t i = 0; i < ATTACH_TAP_EXTRAS && i < plan->extra_count; i++)
		copy(work, plan->extras[i].start, plan->extras[i].size);
	for (uint32_t i = 0; i < STACKS && i < work->stack_count; i++)
		copy_functions(work, plan, i);
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
	work->stack_count = work->new_count = work->record.is_cut = 0;
	work->last_name = 0;
	work->slots_left = RECORD_SLOTS;
	work->function_count = 0;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		work->functions[i] = 0;
	take_registers(work);
	copy_all(work, plan);
	work->record.took_ns = bpf_ktime_get_ns() - work->record.time_ns;
	len = work->record.len;
	hold(len);
	if (len > sizeof(work->record.bytes))
		len = sizeof(work->record.bytes);
	if (bpf_ringbuf_output(&records, &work->record,
			       __builtin_offsetof(struct tap_record, bytes) + len,
			       BPF_RB_NO_WAKEUP) != 0)
		__sync_fetch_and_add(&plan->lost, 1);
	return 0;
}

/* Without it the kernel gives no memory of a program to the program. */
const char terms[] SEC("license") = "Dual MIT/GPL";
