/* SPDX-License-Identifier: MIT */
/* Which layout does an interpreter have? It is a row, or comes from debug information, or is
 * derived; later evidence may contradict it. */
#include "luastate/vm/choose_layout.h"

#include "attach/clock.h"
#include "luastate/arch/arch.h"
#include "luastate/derive/derive.h"
#include "luastate/state/invariants.h"

static bool is_rejected(const struct state_interpreter *interpreter,
			const struct luastate_layout *row)
{
	size_t index = (size_t)(row - luastate_layouts);

	return interpreter->rejected_rows[index / 64] >> index % 64 & 1;
}

static void reject(struct state_interpreter *interpreter, const struct luastate_layout *row)
{
	size_t index = (size_t)(row - luastate_layouts);

	interpreter->rejected_rows[index / 64] |= (uint64_t)1 << index % 64;
}

/* Debug information is not believed until a VM confirms it: a wrong debug file must not hide the
 * row that fits. */
bool state_may_have(const struct state_interpreter *interpreter,
		    const struct luastate_layout *layout)
{
	if (interpreter->layout)
		return interpreter->layout == layout;
	return ((state_is_row(layout) && !is_rejected(interpreter, layout)) ||
		layout == interpreter->own) &&
	       interpreter->shape.size == layout->cframe_size &&
	       interpreter->shape.prev == layout->cframe_prev;
}

bool state_row_holds(struct luastate *state, struct state_interpreter *interpreter,
		     const struct luastate_layout *row, const struct attach_reader *reader,
		     uint64_t L)
{
	enum derive_verdict verdict = derive_judge_row(state, interpreter, reader, row, L);

	interpreter->is_confirmed = verdict == DERIVE_CONFIRMED;
	if (verdict != DERIVE_CONTRADICTED)
		return true;
	reject(interpreter, row);
	return false;
}

void state_set_layout(struct luastate *state, struct state_interpreter *interpreter,
		      const struct luastate_layout *layout)
{
	interpreter->layout = layout;
	if (layout == interpreter->own || !state_retire_layout(state, interpreter->own))
		return;
	interpreter->own = NULL;
	interpreter->row = NULL;
	interpreter->is_derived = interpreter->is_provisional = false;
}

static void replace_layout(struct luastate *state, const struct luastate_layout *before,
			   const struct luastate_layout *layout)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (state->interpreters[i].layout == before)
			state->interpreters[i].layout = layout;
	for (size_t i = 0; i < state->vm_count; i++)
		if (state->vms[i].layout == before)
			state->vms[i].layout = layout;
}

/* Whether a VM that has run compiled code fits a layout. The table of traces remains after its
 * traces are flushed, so its size shows this. */
static bool fits_compiled(const struct luastate *state, const struct luastate_layout *layout,
			  const struct attach_reader *reader, uint64_t G)
{
	uint64_t at =
		G + (uint64_t)layout->global_State_to_J + (uint64_t)layout->jit_State_sizetrace;
	uint32_t size;
	struct failure why;

	return state_has_compiler(layout) && state_read(reader, at, &size, 4, &why) == 0 &&
	       size > 0 && state_check_vm(state, layout, reader, G, NULL, NULL);
}

/* Derive a layout again that was derived before the program had traces. */
static void improve_layout(struct luastate *state, const struct attach_reader *reader,
			   const struct luastate_vm *vm)
{
	struct luastate_layout *before;

	for (size_t i = 0; i < state->interpreter_count; i++) {
		struct state_interpreter *interpreter = &state->interpreters[i];

		if (interpreter->layout != vm->layout || interpreter->own != vm->layout ||
		    state->retired_count == STATE_RETIRED_MAX ||
		    !derive_again(state, interpreter, reader, vm->main_thread, &before))
			continue;
		replace_layout(state, before, interpreter->own);
		state_retire_layout(state, before);
		return;
	}
}

/* Replace a contradicted row by a row that holds, or by a derived layout. */
static void replace_row(struct luastate *state, struct state_interpreter *interpreter,
			const struct attach_reader *reader, const struct luastate_vm *vm)
{
	const struct luastate_layout *before = vm->layout, *found = NULL;
	uint64_t G = vm->G, L = vm->main_thread;

	interpreter->layout = NULL;
	for (size_t i = 0; i < luastate_layout_count && !found; i++) {
		const struct luastate_layout *row = &luastate_layouts[i];

		if (strcmp(row->arch, state_arch_name) == 0 && state_may_have(interpreter, row) &&
		    state_check_vm(state, row, reader, G, NULL, NULL) &&
		    state_row_holds(state, interpreter, row, reader, L))
			found = row;
	}
	if (!found && derive_interpreter(state, interpreter, reader, L))
		found = interpreter->own;
	/* If nothing replaces it, the row is kept: frames were right so far. */
	interpreter->layout = before;
	if (found)
		replace_layout(state, before, found);
}

void state_note_compiled(struct luastate *state, const struct attach_reader *reader,
			 const struct luastate_vm *vm)
{
	for (size_t i = 0; i < state->interpreter_count; i++) {
		struct state_interpreter *interpreter = &state->interpreters[i];
		uint64_t begin_ns;

		if (interpreter->layout != vm->layout || interpreter->is_confirmed)
			continue;
		if (!state_is_row(vm->layout)) {
			interpreter->is_confirmed = !interpreter->is_provisional;
			improve_layout(state, reader, vm);
			return;
		}
		if (!derive_is_due(interpreter))
			return;
		begin_ns = clock_now_ns();
		if (!state_row_holds(state, interpreter, vm->layout, reader, vm->main_thread))
			replace_row(state, interpreter, reader, vm);
		derive_rest(interpreter, begin_ns);
		return;
	}
}

/* Whether an interpreter with a layout has ruled a row out. */
static bool is_ruled_out(const struct luastate *state, const struct luastate_layout *layout,
			 const struct luastate_layout *row)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (state->interpreters[i].layout == layout &&
		    is_rejected(&state->interpreters[i], row))
			return true;
	return false;
}

/* A trace that was flushed since the stop says nothing about layouts. The row is replaced only if
 * the VM contradicts it now, before and after another row fits. A layout from debug information
 * stays. */
void state_reconsider_layout(struct luastate *state, const struct attach_reader *reader, uint64_t G)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	const struct luastate_layout *before = vm ? vm->layout : NULL;

	if (vm && !state_is_row(before))
		improve_layout(state, reader, vm);
	if (!vm || !state_is_row(before) || fits_compiled(state, before, reader, G))
		return;
	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];

		if (layout == before || strcmp(layout->arch, state_arch_name) != 0 ||
		    layout->gc64 != before->gc64 || is_ruled_out(state, before, layout) ||
		    !fits_compiled(state, layout, reader, G))
			continue;
		if (!fits_compiled(state, before, reader, G))
			replace_layout(state, before, layout);
		return;
	}
}
