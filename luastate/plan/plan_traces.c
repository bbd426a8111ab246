/* SPDX-License-Identifier: MIT */
/* What is read of the running trace? The stop copies its header, which identifies it. The parts
 * that the header refers to live as long as the trace, so they are read after the stop.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (vmstate), src/lj_jit.h (jit_State.trace).
 */
#include "luastate/plan/plan_internal.h"

#include "luastate/function/proto.h"
#include "luastate/trace/trace.h"

enum {
	/* Functions of a trace that are asked for at once; others are read one by one. */
	FUNCTIONS_ASKED = 16,
};

/* The number of the trace that a VM notes as running or as being left, 0 for none. */
static uint32_t noted_number(struct attach_image *image, const struct luastate_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J;
	uint32_t parent;
	int32_t vmstate;

	if (!state_has_compiler(layout) ||
	    !plan_get(image, vm->G + (uint64_t)layout->global_State_vmstate, &vmstate, 4))
		return 0;
	if (vmstate == ~layout->vmst_exit &&
	    plan_get(image, J + (uint64_t)layout->jit_State_parent, &parent, 4))
		return parent;
	return vmstate > 0 ? (uint32_t)vmstate : 0;
}

/* The same, with its slot in the table of traces. */
static uint32_t noted_trace(struct attach_image *image, const struct luastate_vm *vm,
			    uint64_t *ret_slot)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J, table;
	uint32_t size, number = noted_number(image, vm);

	if (!number || !plan_get(image, J + (uint64_t)layout->jit_State_sizetrace, &size, 4) ||
	    number >= size || !plan_get(image, J + (uint64_t)layout->jit_State_trace, &table, 8))
		return 0;
	*ret_slot = table + (uint64_t)layout->ref_size * number;
	return state_is_pointer(*ret_slot) ? number : 0;
}

void plan_want_trace(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_trace *trace)
{
	const struct luastate_vm *vm = trace->number ? state_vm_by_G(state, trace->G) : NULL;

	if (!vm)
		return;
	plan_want_once(image, trace->slot, trace->slot + (uint64_t)vm->layout->ref_size);
	if (state_is_pointer(trace->address))
		plan_want_once(image, trace->address,
			       trace->address + (uint64_t)vm->layout->GCtrace_sizeof);
}

/* Ask for the header. A known trace most likely has the address that it had. */
static bool plan_noted(struct luastate_plan_context *context, struct attach_image *image,
		       const struct luastate_vm *vm, uint32_t number, uint64_t slot)
{
	struct luastate_plan_trace *found = &context->progress.trace;
	const struct trace *known = trace_find(context->state, vm->G, number);
	uint8_t bytes[STATE_OBJECT_MAX];
	bool there;

	*found = (struct luastate_plan_trace){ .G = vm->G, .number = number, .slot = slot };
	there = plan_get(image, slot, bytes, (size_t)vm->layout->ref_size);
	if (there)
		found->address = state_ref(vm->layout, bytes, 0);
	else if (known)
		found->address = known->address;
	if (there && (!state_is_pointer(found->address) ||
		      plan_get(image, found->address, bytes, (size_t)vm->layout->GCtrace_sizeof)))
		return false;
	plan_want_trace(context->state, image, found);
	return true;
}

bool plan_trace(struct luastate_plan_context *context, struct attach_image *image)
{
	const struct luastate *state = context->state;

	for (size_t i = 0; i < state->vm_count; i++) {
		uint64_t slot;
		uint32_t number = noted_trace(image, &state->vms[i], &slot);

		if (number)
			return plan_noted(context, image, &state->vms[i], number, slot);
	}
	return false;
}

/* Ask for the bytes that prove the inlined functions at the position unchanged. If the trace called
 * something, the position has no snapshot; the trace's first functions are taken instead. */
static void want_functions(const struct luastate *state, struct attach_image *stopped,
			   struct attach_image *after, const struct trace *trace)
{
	const struct trace_snapshot *snapshot =
		trace_snapshot_at(trace, attach_pc(attach_image_registers(stopped)));
	size_t count = snapshot ? snapshot->count : trace->function_count;

	for (size_t i = 0; i < count && i < FUNCTIONS_ASKED; i++) {
		const struct state_proto *known = state_find_proto(
			state, snapshot ? trace->frames[snapshot->first + i].function
					: trace->functions[i].address);

		if (known)
			plan_want_identity(trace->layout, after, known);
	}
}

void plan_trace_after(const struct luastate_plan_context *context, struct attach_image *stopped,
		      struct attach_image *after)
{
	const struct luastate_plan_trace *found = &context->progress.trace;
	const struct luastate_vm *vm = state_vm_by_G(context->state, found->G);
	uint8_t header[STATE_OBJECT_MAX];
	const struct trace *known;
	struct trace_block block;
	uint64_t J;

	if (!found->number || !vm ||
	    !plan_get(stopped, found->address, header, (size_t)vm->layout->GCtrace_sizeof) ||
	    !trace_block_of(vm->layout, header, found->address, &block))
		return;
	/* The order matters: a header that is read last and unchanged proves the content. */
	plan_want_once(after, block.start, block.start + block.len);
	J = vm->G + (uint64_t)vm->layout->global_State_to_J;
	plan_want_once(after, J + (uint64_t)vm->layout->jit_State_trace,
		       J + (uint64_t)vm->layout->jit_State_sizetrace + 4);
	plan_want_trace(context->state, after, found);
	known = trace_find(context->state, found->G, found->number);
	if (known)
		want_functions(context->state, stopped, after, known);
}
