/* SPDX-License-Identifier: MIT */
/* How are VMs found, and proven to be VMs? */
#include "luastate/vm/vm_internal.h"

#include <stdlib.h>

#include "luastate/arch/arch.h"
#include "luastate/derive/derive.h"
#include "luastate/state/invariants.h"
#include "luastate/vm/choose_layout.h"

enum {
	DEBUG_LOOKS = 3,
	/* Coroutines of unknown VMs that one sample tries with all layouts. */
	UNKNOWN_MAX = 8,
};

/* ---- The interpreter's code ------------------------------------------------------------- */

bool luastate_is_interpreter(const struct luastate_unwind_rule *rule)
{
	return rule->end - rule->start >= LUASTATE_INTERPRETER_MIN_BYTES &&
	       state_arch_shape(rule).size > 0;
}

int luastate_add_interpreter(struct luastate *state, const struct luastate_unwind_rule *rule,
			     const uint8_t *code, struct failure *why)
{
	struct state_interpreter *interpreter = &state->interpreters[state->interpreter_count];
	size_t len = (size_t)(rule->end - rule->start);

	if (state->interpreter_count == STATE_INTERPRETERS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, rule->start,
				   "follow one more interpreter");
	*interpreter = (struct state_interpreter){ .start = rule->start,
						   .end = rule->end,
						   .code = malloc(len),
						   .shape = state_arch_shape(rule) };
	if (!interpreter->code)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, rule->start,
				   "keep the interpreter");
	memcpy(interpreter->code, code, len);
	state->interpreter_count++;
	return 0;
}

void luastate_set_file(struct luastate *state, size_t index, uint64_t start, uint64_t end)
{
	state->interpreters[index].data_start = start;
	state->interpreters[index].data_end = end;
}

/* A new copy of LuaJIT may put its VMs at the addresses of a removed copy's VMs. */
static void drop_vms(struct luastate *state, uint64_t code)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->vm_count; i++) {
		if (state->vm_code[i] == code)
			continue;
		state->vms[kept] = state->vms[i];
		state->vm_code[kept++] = state->vm_code[i];
	}
	state->vm_count = kept;
}

void luastate_drop_interpreter(struct luastate *state, size_t index)
{
	struct state_interpreter *interpreter = &state->interpreters[index];

	drop_vms(state, interpreter->start);
	if (!state_retire_layout(state, interpreter->own)) {
		/* Others may still refer to its layout, so its slot is never reused. */
		interpreter->end = interpreter->start;
		return;
	}
	free(interpreter->code);
	free(interpreter->reading);
	state->interpreter_count--;
	memmove(interpreter, interpreter + 1,
		(state->interpreter_count - index) * sizeof(*interpreter));
}

/* ---- VMs -------------------------------------------------------------------------------- */

const struct luastate_vm *state_vm_in_register(const struct luastate *state,
					       const struct attach_registers *regs)
{
	const struct luastate_layout *last = NULL;
	const struct luastate_vm *vm = NULL;

	for (size_t i = 0; i < state->interpreter_count && !vm; i++) {
		const struct luastate_layout *layout = state->interpreters[i].layout;

		if (layout && layout != last)
			vm = state_vm_by_G(state, regs->r[STATE_REG_VM] -
							  state_arch_register_offset(layout));
		if (vm && vm->layout != layout)
			vm = NULL;
		last = layout;
	}
	return vm;
}

static const struct luastate_vm *add_vm(struct luastate *state,
					const struct luastate_layout *layout,
					const struct attach_reader *reader, uint64_t G)
{
	uint64_t handler, main_thread = G - (uint64_t)layout->lua_State_sizeof;
	const struct state_interpreter *found;
	struct state_interpreter *interpreter;
	struct luastate_vm *vm;
	struct failure why;

	if (!state_check_vm(state, layout, reader, G, NULL, NULL) ||
	    state_read(reader, G + (uint64_t)layout->global_State_to_dispatch, &handler, 8, &why))
		return NULL;
	found = state_interpreter_at(state, handler);
	if (!found)
		return NULL;
	interpreter = &state->interpreters[found - state->interpreters];
	if (!state_may_have(interpreter, layout) ||
	    (!interpreter->layout && state_is_row(layout) &&
	     !state_row_holds(state, interpreter, layout, reader, main_thread)))
		return NULL;
	state_set_layout(state, interpreter, layout);
	if (state->vm_count == STATE_VMS_MAX) {
		/* VMs come and go; live ones are found again. */
		state->vm_count = 0;
	}
	state->vm_code[state->vm_count] = interpreter->start;
	vm = &state->vms[state->vm_count++];
	*vm = (struct luastate_vm){ .G = G, .main_thread = main_thread, .layout = layout };
	return vm;
}

/* Whether some interpreter may have this row. */
static bool is_possible(const struct luastate *state, const struct luastate_layout *layout)
{
	if (strcmp(layout->arch, state_arch_name) != 0)
		return false;
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (state_may_have(&state->interpreters[i], layout))
			return true;
	return false;
}

uint64_t state_global_of(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t L)
{
	uint8_t bytes[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t G;

	if (state_read_object(layout, reader, L, state_gct(layout->tag_thread), bytes,
			      (size_t)layout->lua_State_sizeof, &why) != 0)
		return 0;
	G = state_ref(layout, bytes, layout->lua_State_glref);
	return state_is_aligned(G) ? G : 0;
}

/* Find a known VM under one of the interpreters' layouts; the first one nearly always fits. */
static const struct luastate_vm *find_known(struct luastate *state,
					    const struct attach_reader *reader, uint64_t L)
{
	const struct luastate_layout *last = NULL;

	for (size_t i = 0; i < state->interpreter_count; i++) {
		const struct luastate_layout *layout = state->interpreters[i].layout;
		const struct luastate_vm *vm;
		uint64_t G;

		if (!layout || layout == last)
			continue;
		last = layout;
		G = state_global_of(layout, reader, L);
		vm = G ? state_vm_by_G(state, G) : NULL;
		if (vm && vm->layout == layout)
			return vm;
	}
	return NULL;
}

/* Whether a main coroutine is right before the global state, and each refers to the other: no
 * coincidence, also where a build has other members. (A word that refers to what follows is.) */
static bool looks_like_vm(const struct luastate_layout *layout, const struct attach_reader *reader,
			  uint64_t G)
{
	uint64_t main_thread = G - (uint64_t)layout->lua_State_sizeof;
	uint8_t g[STATE_GLOBAL_MAX];
	int32_t len = layout->global_State_to_dispatch;
	struct failure why;

	if (len <= 0 || len > STATE_GLOBAL_MAX)
		len = STATE_GLOBAL_MAX;
	if (state_global_of(layout, reader, main_thread) != G ||
	    state_read(reader, G, g, (size_t)len, &why) != 0)
		return false;
	for (int32_t at = 0; at + layout->ref_size <= len; at += layout->ref_size)
		if (state_ref(layout, g, at) == main_thread)
			return true;
	return false;
}

/* Try one layout. @param ret_seen Set if the coroutine looks like a VM's. */
static const struct luastate_vm *try_layout(struct luastate *state,
					    const struct luastate_layout *layout,
					    const struct attach_reader *reader, uint64_t L,
					    bool *ret_seen)
{
	uint64_t G = state_global_of(layout, reader, L);

	*ret_seen |= G && looks_like_vm(layout, reader, G);
	return G ? add_vm(state, layout, reader, G) : NULL;
}

/* Try the layout from debug information. It lacks macros; LJ_STACK_EXTRA is the only one that the
 * interpreter does not show, and it has had only these values. */
static const struct luastate_vm *try_debug(struct luastate *state,
					   struct state_interpreter *interpreter,
					   const struct attach_reader *reader, uint64_t L,
					   bool *ret_seen)
{
	static const int32_t stack_extras[] = { 5, 7, 8 };
	const struct luastate_vm *vm = NULL;

	if (!interpreter->own)
		return NULL;
	if (interpreter->layout || interpreter->is_derived)
		return try_layout(state, interpreter->own, reader, L, ret_seen);
	for (size_t i = 0; i < sizeof(stack_extras) / sizeof(stack_extras[0]) && !vm; i++) {
		interpreter->own->LJ_STACK_EXTRA = stack_extras[i];
		vm = try_layout(state, interpreter->own, reader, L, ret_seen);
	}
	if (vm)
		derive_opcodes(interpreter, reader, interpreter->own);
	return vm;
}

const struct luastate_vm *luastate_vm_of(struct luastate *state, const struct attach_reader *reader,
					 uint64_t L, struct failure *why)
{
	const struct luastate_vm *vm = find_known(state, reader, L);
	bool seen = false;

	/* A running VM may fail a check at one look, and a similar row might then win at the next.
	 * If debug information recognises the VM at all, it gets several looks first. */
	for (unsigned look = 0; look < DEBUG_LOOKS && !vm && (look == 0 || seen); look++)
		for (size_t i = 0; i < state->interpreter_count && !vm; i++)
			vm = try_debug(state, &state->interpreters[i], reader, L, &seen);
	for (size_t i = 0; i < luastate_layout_count && !vm; i++)
		if (is_possible(state, &luastate_layouts[i]))
			vm = try_layout(state, &luastate_layouts[i], reader, L, &seen);
	for (size_t i = 0; i < state->interpreter_count && !vm; i++)
		if (derive_interpreter(state, &state->interpreters[i], reader, L))
			vm = try_debug(state, &state->interpreters[i], reader, L, &seen);
	if (!vm) {
		if (seen)
			state_note_refused(state, L);
		failure_set(why, FAILURE_NOT_FOUND, 0, 0, L, "recognise the VM");
	} else {
		state_forget_refused(state, L);
	}
	return vm;
}

const struct luastate_vm *state_sample_vm_of(struct luastate *state,
					     const struct attach_reader *reader, uint64_t L,
					     struct failure *why)
{
	const struct luastate_vm *vm = find_known(state, reader, L);

	if (vm)
		return vm;
	if (state->unknown_work == UNKNOWN_MAX) {
		failure_set(why, FAILURE_LIMIT, 0, 0, L, "recognise the VM");
		return NULL;
	}
	/* Found VMs are charged too: forged VMs could push each other out of the list. */
	state->unknown_work++;
	return luastate_vm_of(state, reader, L, why);
}

size_t luastate_vm_count(const struct luastate *state)
{
	return state->vm_count;
}

const struct luastate_vm *luastate_vm_get(const struct luastate *state, size_t index)
{
	return &state->vms[index];
}

/* ---- VM state --------------------------------------------------------------------------- */

int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	int32_t vmstate;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	if (state_read(reader, G + (uint64_t)vm->layout->global_State_vmstate, &vmstate,
		       sizeof(vmstate), why) != 0)
		return -1;
	*ret_vmstate = vmstate;
	return 0;
}

/* Sysprof's numbers are Tarantool's VM states. In other builds all C functions are one state, and
 * Lua and built-ins are another. */
int luastate_sysprof_state(const struct luastate_vm *vm, int vmstate)
{
	const struct luastate_layout *layout = vm->layout;
	const int32_t states[] = { layout->vmst_interp, layout->vmst_lfunc, layout->vmst_ffunc,
				   layout->vmst_cfunc,	layout->vmst_gc,    layout->vmst_exit,
				   layout->vmst_record, layout->vmst_opt,   layout->vmst_asm };

	if (vmstate > 0 || (vmstate == 0 && !STATE_TRACES_NOTED))
		return (int)(sizeof(states) / sizeof(states[0]));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i] != LAYOUT_ABSENT && states[i] == ~vmstate)
			return (int)i;
	return -1;
}
