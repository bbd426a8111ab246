/* SPDX-License-Identifier: MIT */
/* What does the sampler's BPF program copy of the functions on coroutines' stacks? */
#ifndef LUASTATE_BPF_FUNCTIONS_BPF_H
#define LUASTATE_BPF_FUNCTIONS_BPF_H

#include "luastate/bpf/stacks.bpf.h"

enum {
	CONSTANTS = 24, /* copied of a new prototype */
	CONSTANT_BYTES = 40,
	PROTO_MAX = 8192,
	NAME_BYTES = 128,
	LINK_DISTANCE_MAX = 66000 * 8,
};

/* @return whether the slot can hold a frame's function. */
static bool read_function(const struct scan *scan, uint32_t at, uint64_t *ret_function)
{
	uint64_t function = copied_word(scan->work, at);

	if (scan->vm->ref_size == 8) {
		if ((int32_t)((int64_t)function >> 47) != scan->vm->function_tag)
			return false;
		function &= OBJECT_MASK;
	} else {
		function &= 0xffffffff;
		if (function >= LUASTATE_LOW_MEMORY_END)
			return false;
	}
	*ret_function = function;
	return (function & 7) == 0 && is_pointer(function);
}

/* @return whether the slot's companion can be a frame link. */
static bool has_link(const struct scan *scan, uint32_t at)
{
	uint64_t link;

	if (scan->vm->ref_size == 8) {
		link = copied_word(scan->work, at + 8);
	} else {
		link = copied_word(scan->work, at) >> 32;
		if (link >= LUASTATE_LOW_MEMORY_END)
			return false;
	}
	return (link & 3) == 0 ? is_pointer(link) : link < LINK_DISTANCE_MAX;
}

/** The constants of a prototype. */
struct constants {
	struct work *work;
	uint64_t end; /* object references are below this address */
	uint32_t count, ref_size, string_size;
};

static long copy_constant(uint32_t i, void *context)
{
	struct constants *constants = context;
	uint64_t at = constants->end - (uint64_t)constants->ref_size * (i + 1), constant;

	if (i >= constants->count || constants->work->record.len >= ATTACH_SAMPLER_BYTES)
		return 1;
	constant = read_word(constants->work, at, constants->ref_size);
	if (!constant) /* not present, as the others then mostly are; no reference is 0 */
		return 1;
	copy(constants->work, constant, constants->string_size + CONSTANT_BYTES);
	return 0;
}

/* Copy the rest of a prototype after its header, in the header's range if all of it is present. */
static void copy_rest(struct work *work, uint64_t start, uint64_t size)
{
	if (!copy_piece(work, start, size))
		copy(work, start, size);
}

/* Copy a prototype. An unknown one is copied whole, with the strings that name its callees, because
 * it may be garbage a moment later. A known one is copied only as far as decoding needs to identify
 * it. */
SUBPROGRAM int copy_proto(struct work *work, const struct luastate_bpf_plan *plan,
			  uint32_t vm_index, uint64_t proto)
{
	struct constants constants = { .work = work };
	const struct luastate_bpf_vm *vm;
	uint64_t at, name, lines, size, key;
	uint32_t slot;

	if (!work || !plan || vm_index >= LUASTATE_BPF_VMS)
		return 0;
	vm = &plan->vms[vm_index];
	if (!copy(work, proto, vm->proto_size))
		return 0;
	at = work->record.len - vm->proto_size;
	size = copied_field(work, at + vm->proto_bytes, 4);
	name = copied_field(work, at + vm->proto_name, vm->ref_size);
	slot = luastate_bpf_known_slot(plan->salt, proto);
	key = luastate_bpf_known_key(plan->salt, proto, read_word(work, name + vm->string_hash, 4),
				     size, copied_field(work, at + vm->proto_line, 4));
	if (known_at(work, slot) == key) {
		lines = copied_field(work, at + vm->proto_lines, vm->ref_size);
		if (lines > proto && lines < proto + size)
			copy(work, lines,
			     proto + size - lines < vm->lines_size ? proto + size - lines
								   : vm->lines_size);
		if (name != work->last_name)
			copy(work, name, vm->string_size);
		work->last_name = name;
		return 0;
	}
	constants.end = copied_field(work, at + vm->proto_constants, vm->ref_size);
	constants.count = copied_field(work, at + vm->proto_constant_count, 4);
	if (size > PROTO_MAX)
		size = PROTO_MAX;
	if (size > vm->proto_size)
		copy_rest(work, proto + vm->proto_size, size - vm->proto_size);
	/* The string may be the last one of its page, so the full length may not be readable. */
	if (!copy(work, name, vm->string_size + NAME_BYTES))
		copy(work, name, vm->string_size);
	constants.ref_size = vm->ref_size;
	constants.string_size = vm->string_size;
	repeat(CONSTANTS, copy_constant, &constants);
	return 0;
}

/* Always inlined: the kernel allows only eight nested calls. */
static __always_inline void copy_function(struct scan *scan, uint64_t function)
{
	const struct luastate_bpf_vm *vm = scan->vm;
	struct work *work = scan->work;
	uint64_t at, code;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		if (work->functions[i] == function)
			return;
	work->functions[work->function_count++ & (FUNCTIONS - 1)] = function;
	look_at_clock(work);
	if (!copy(work, function, vm->function_size) || !vm->proto_size)
		return;
	at = work->record.len - vm->function_size;
	if (copied_byte(work, at + vm->function_kind) != 0)
		return;
	code = copied_field(work, at + vm->function_code, vm->ref_size);
	copy_proto(work, scan->plan, scan->index, code - vm->proto_size);
}

static long look_for_function(uint32_t i, void *context)
{
	struct scan *scan = context;
	uint32_t at = scan->offset - 8 * i;
	uint64_t function;

	if (i >= scan->count || !scan->work->slots_left ||
	    scan->work->record.len >= ATTACH_SAMPLER_BYTES || !scan->work->reads_left)
		return 1;
	scan->work->slots_left--;
	if (read_function(scan, at, &function) && has_link(scan, at))
		copy_function(scan, function);
	return 0;
}

/* Copy the function of a frame that is being entered or left: it has no link, so the search misses
 * it. */
static void copy_entered(struct scan *scan, const struct top *top, uint64_t base)
{
	uint64_t distance = base - top->start, function;

	if (base >= top->start && distance >= 2 * scan->vm->ref_size &&
	    read_function(scan, (uint32_t)(top->offset + distance) - 2 * scan->vm->ref_size,
			  &function))
		copy_function(scan, function);
}

/* Copy the functions of the frames at a stack's end, innermost first, because these may be garbage
 * a moment later. */
SUBPROGRAM int copy_functions(struct work *work, const struct luastate_bpf_plan *plan,
			      uint32_t index)
{
	struct scan scan = { .work = work };
	const struct top *top;
	uint64_t vm_index;
	uint32_t used;

	if (!work || !plan || index >= STACKS)
		return 0;
	top = &work->top;
	vm_index = work->stacks[index].vm;
	hold(vm_index);
	if (vm_index >= LUASTATE_BPF_VMS || top->used_end < top->start || !top->used_end)
		return 0;
	scan.plan = plan;
	scan.vm = &plan->vms[vm_index];
	scan.index = vm_index;
	used = (uint32_t)(top->used_end - top->start);
	scan.offset = (uint32_t)top->offset + used - 2 * scan.vm->ref_size;
	scan.count = used < 2 * scan.vm->ref_size ? 0 : (used - 2 * scan.vm->ref_size) / 8 + 1;
	copy_entered(&scan, top, top->used_end);
	copy_entered(&scan, top, top->base);
	repeat(STACK_SLOTS, look_for_function, &scan);
	return 0;
}

#endif
