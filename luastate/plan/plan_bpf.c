/* SPDX-License-Identifier: MIT */
/* What does the kernel copy at each tick? After a copy the planner can ask for nothing more, so it
 * notes what is missing for the next copies. */
#include "luastate/plan/plan_internal.h"

#include "luastate/arch/arch.h"
#include "luastate/function/proto.h"
#include "luastate/trace/code_areas.h"
#include "luastate/trace/trace.h"

/* Without the compiler the trace's part is empty: its header has no bytes. */
static void describe_compiler(const struct luastate_layout *layout, struct luastate_bpf_vm *ret_vm)
{
	uint32_t J = (uint32_t)layout->global_State_to_J;

	if (!state_has_compiler(layout)) {
		ret_vm->global_size = (uint32_t)layout->global_State_sizeof;
		ret_vm->parent = ret_vm->state;
		ret_vm->parent_size = 4;
		return;
	}
	ret_vm->global_size = J + (uint32_t)layout->jit_State_sizetrace + 4;
	ret_vm->traces = J + (uint32_t)layout->jit_State_trace;
	ret_vm->trace_count = J + (uint32_t)layout->jit_State_sizetrace;
	ret_vm->parent = J + (uint32_t)layout->jit_State_parent;
	ret_vm->parent_size = areas_noted_end(layout) - (uint32_t)layout->jit_State_parent;
	ret_vm->trace_size = (uint32_t)layout->GCtrace_sizeof;
}

static void describe_vm(const struct luastate *state, const struct luastate_vm *vm,
			struct luastate_bpf_vm *ret_vm)
{
	const struct luastate_layout *layout = vm->layout;
	const struct state_interpreter *interpreter =
		state_interpreter_at(state, state->vm_code[vm - state->vms]);

	*ret_vm = (struct luastate_bpf_vm){
		.G = vm->G,
		.register_offset = state_arch_register_offset(layout),
		.ref_size = (uint32_t)layout->ref_size,
		.current = (uint32_t)layout->global_State_cur_L,
		.state = (uint32_t)layout->global_State_vmstate,
		.compiled_base = (uint32_t)layout->global_State_jit_base,
		.state_exit = ~layout->vmst_exit,
		.whole_size = (uint32_t)(layout->global_State_to_bcff + 4 * layout->GG_NUM_ASMFF),
		.registry = (uint32_t)layout->global_State_registrytv,
		.table_size = (uint32_t)layout->GCtab_sizeof,
		.thread_size = (uint32_t)layout->lua_State_sizeof,
		.global = (uint32_t)layout->lua_State_glref,
		.thread_type = (uint32_t)layout->GCobj_gct,
		.thread_type_value = (uint8_t)state_gct(layout->tag_thread),
		.stack = (uint32_t)layout->lua_State_stack,
		.base = (uint32_t)layout->lua_State_base,
		.limit = (uint32_t)layout->lua_State_maxstack,
		.vm_frame = (uint32_t)layout->lua_State_cframe,
		.frame_thread = (uint32_t)layout->cframe_L,
		.frame_previous = (uint32_t)layout->cframe_prev,
		.function_size = (uint32_t)layout->GCfunc_header,
		.function_tag = layout->gc64 ? layout->tag_func : 0,
		.function_code = (uint32_t)layout->GCfunc_pc,
		.function_kind = (uint32_t)layout->GCfunc_ffid,
		.proto_size = (uint32_t)layout->GCproto_sizeof,
		.proto_bytes = (uint32_t)layout->GCproto_sizept,
		.proto_name = (uint32_t)layout->GCproto_chunkname,
		.proto_lines = (uint32_t)layout->GCproto_lineinfo,
		.lines_size = STATE_DEBUG_COMPARED,
		.proto_line = (uint32_t)layout->GCproto_firstline,
		.proto_constants = (uint32_t)layout->GCproto_k,
		.proto_constant_count = (uint32_t)layout->GCproto_sizekgc,
		.string_size = (uint32_t)layout->GCstr_sizeof,
		.string_hash = (uint32_t)layout->GCstr_hash,
	};
	describe_compiler(layout, ret_vm);
	if (interpreter) {
		ret_vm->code_start = interpreter->start;
		ret_vm->code_end = interpreter->end;
		ret_vm->frame_distance = state_arch_frame_distance(interpreter);
	}
}

/* @return the VM's index in the plan, or LUASTATE_BPF_VMS if there is no room. */
static uint32_t add_vm(const struct luastate *state, struct luastate_bpf_plan *plan, uint64_t G)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	uint32_t index = 0;

	while (index < plan->vm_count && plan->vms[index].G != G)
		index++;
	if (index < plan->vm_count || index == LUASTATE_BPF_VMS)
		return index;
	if (!vm)
		return LUASTATE_BPF_VMS;
	describe_vm(state, vm, &plan->vms[index]);
	plan->vm_count++;
	return index;
}

/* @return the index in the plan of a VM with the same layout and interpreter, or LUASTATE_BPF_VMS.
 */
static uint32_t find_like(const struct luastate *state, const struct luastate_bpf_plan *plan,
			  size_t index)
{
	for (uint32_t i = 0; i < plan->vm_count; i++) {
		const struct luastate_vm *vm = state_vm_by_G(state, plan->vms[i].G);

		if (vm && vm->layout == state->vms[index].layout &&
		    state->vm_code[vm - state->vms] == state->vm_code[index])
			return i;
	}
	return LUASTATE_BPF_VMS;
}

static bool has_vm(const struct luastate_bpf_plan *plan, uint64_t G)
{
	for (uint32_t i = 0; i < plan->vm_count; i++)
		if (plan->vms[i].G == G)
			return true;
	return false;
}

/* Add the VMs that no stack of the last sample showed, but the next sample may need. */
static void add_others(const struct luastate *state, struct luastate_bpf_plan *plan)
{
	for (size_t i = state->vm_count; i-- > 0 && plan->other_count < LUASTATE_BPF_OTHERS;) {
		uint64_t G = state->vms[i].G;
		uint32_t like = has_vm(plan, G) ? LUASTATE_BPF_VMS : find_like(state, plan, i);

		if (like < LUASTATE_BPF_VMS)
			plan->others[plan->other_count++] = G | like;
	}
}

void luastate_plan_bpf(const struct luastate_plan_context *context, struct luastate_bpf_plan *plan)
{
	const struct luastate_prediction *prediction = context->prediction;
	const struct luastate *state = context->state;

	plan->native_end = prediction->native_end;
	plan->native_limit = context->stack_limit;
	plan->vm_count = plan->stack_count = plan->other_count = 0;
	for (unsigned i = 0; i < prediction->thread_count; i++) {
		uint32_t vm = add_vm(state, plan, prediction->threads[i].G);

		if (vm == LUASTATE_BPF_VMS || plan->stack_count == LUASTATE_BPF_STACKS)
			continue;
		plan->stacks[plan->stack_count++] = prediction->threads[i].L | vm;
	}
	/* A new thread may be in any VM. */
	for (size_t i = 0; prediction->thread_count == 0 && i < state->vm_count; i++)
		add_vm(state, plan, state->vms[i].G);
	plan->roams = prediction->roams || prediction->thread_count == 0;
	if (plan->roams)
		add_others(state, plan);
}

static void renew(void *to, const void *from, size_t len)
{
	if (memcmp(to, from, len) != 0)
		memcpy(to, from, len);
}

void luastate_renew_bpf(const struct luastate_plan_context *context, struct luastate_bpf_plan *plan)
{
	const size_t len = offsetof(struct luastate_bpf_plan, vms) - sizeof(plan->head);
	struct luastate_bpf_plan wanted;

	memcpy(&wanted.native_end, &plan->native_end, len);
	luastate_plan_bpf(context, &wanted);
	renew(plan->vms, wanted.vms, wanted.vm_count * sizeof(wanted.vms[0]));
	renew(plan->stacks, wanted.stacks, wanted.stack_count * sizeof(wanted.stacks[0]));
	renew(plan->others, wanted.others, wanted.other_count * sizeof(wanted.others[0]));
	renew(&plan->native_end, &wanted.native_end, len);
}

static bool is_asked(const struct luastate_bpf_plan *plan, uint64_t start, uint64_t size)
{
	for (uint32_t i = 0; i < plan->extra_count; i++)
		if (plan->extras[i].start == start && plan->extras[i].size >= size)
			return true;
	return false;
}

/* Add a range; without room the oldest range is dropped. @return false if it was in the plan
 * already, or is too large. */
static bool add_extra(struct luastate_bpf_plan *plan, uint64_t start, uint64_t size)
{
	if (size > LUASTATE_BPF_EXTRA_MAX || is_asked(plan, start, size))
		return false;
	if (plan->extra_count == LUASTATE_BPF_EXTRAS) {
		memmove(plan->extras, plan->extras + 1,
			(LUASTATE_BPF_EXTRAS - 1) * sizeof(plan->extras[0]));
		plan->extra_count--;
	}
	plan->extras[plan->extra_count] =
		(struct luastate_bpf_extra){ .start = start, .size = (uint32_t)size };
	plan->extra_count++;
	return true;
}

bool luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
			  struct luastate_bpf_plan *plan)
{
	uint64_t start, size;
	bool lacked = false;

	plan_begin(context);
	for (unsigned round = 1; plan_go_on(context, image, round);)
		round++;
	for (size_t at = 0; attach_image_next_missing(image, &at, &start, &size);) {
		size_t len;

		/* Another range may hold these bytes too. */
		attach_image_peek(image, remote_addr_make(start), (size_t)size, &len);
		if (len < size)
			lacked |= add_extra(plan, start, size);
	}
	return lacked;
}

static uint64_t key_of(const struct state_proto *proto, uint64_t salt)
{
	const struct luastate_layout *layout = proto->layout;
	const uint8_t *header = proto->identity.header;

	return luastate_bpf_known_key(salt, proto->address, proto->identity.name_hash,
				      state_u32(header, layout->GCproto_sizept),
				      state_u32(header, layout->GCproto_firstline));
}

static void note_proto(const struct luastate *state, uint64_t address, uint64_t salt,
		       uint64_t *table)
{
	const struct state_proto *known = state_find_proto(state, address);

	if (known)
		table[luastate_bpf_known_slot(salt, address)] = key_of(known, salt);
}

void luastate_note_known(const struct luastate_plan_context *context,
			 const struct luastate_chain *chain, uint64_t salt, uint64_t *table)
{
	const struct luastate_plan_progress *found = &context->progress;

	for (unsigned i = 0; i < found->frame_count; i++)
		note_proto(context->state, found->frames[i].proto, salt, table);
	/* The planner notes only this number of frames, the innermost ones. */
	for (size_t i = LUASTATE_PLAN_FRAMES; i < chain->count; i++) {
		const struct luastate_function *function = chain->frames[i].function;

		if (function && function->kind == LUASTATE_LUA)
			note_proto(context->state, function->address, salt, table);
	}
}
