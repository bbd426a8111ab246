/* SPDX-License-Identifier: MIT */
/* Which interpreters, VMs and layouts are known? Nothing here reads. */
#include "luastate/state/state.h"

#include "luastate/vm.h"

const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (pc >= state->interpreters[i].start && pc < state->interpreters[i].end)
			return &state->interpreters[i];
	return NULL;
}

const struct luastate_layout *state_layout_at(const struct luastate *state, uint64_t pc)
{
	const struct state_interpreter *interpreter = state_interpreter_at(state, pc);

	return interpreter ? interpreter->layout : NULL;
}

bool luastate_in_interpreter(const struct luastate *state, uint64_t pc)
{
	return state_interpreter_at(state, pc) != NULL;
}

bool luastate_has_interpreter(const struct luastate *state)
{
	return state->interpreter_count > 0;
}

bool state_code_is(const struct state_interpreter *interpreter, uint64_t pc, const uint8_t *bytes,
		   size_t len)
{
	return pc >= interpreter->start && pc <= interpreter->end && len <= interpreter->end - pc &&
	       memcmp(interpreter->code + (pc - interpreter->start), bytes, len) == 0;
}

const struct luastate_vm *state_vm_by_G(const struct luastate *state, uint64_t G)
{
	for (size_t i = 0; i < state->vm_count; i++)
		if (state->vms[i].G == G)
			return &state->vms[i];
	return NULL;
}

void state_note_refused(struct luastate *state, uint64_t L)
{
	for (size_t i = 0; i < state->refused_count; i++)
		if (state->refused[i] == L)
			return;
	if (state->refused_count < STATE_REFUSED_MAX)
		state->refused[state->refused_count++] = L;
}

void state_forget_refused(struct luastate *state, uint64_t L)
{
	for (size_t i = 0; i < state->refused_count; i++)
		if (state->refused[i] == L)
			state->refused[i--] = state->refused[--state->refused_count];
}

bool state_retire_layout(struct luastate *state, struct luastate_layout *layout)
{
	if (!layout)
		return true;
	if (state->retired_count == STATE_RETIRED_MAX)
		return false;
	state->retired[state->retired_count++] = layout;
	return true;
}

struct luastate_layout *state_take_retired(struct luastate *state,
					   const struct luastate_layout *layout)
{
	for (size_t i = 0; i < state->retired_count; i++) {
		struct luastate_layout same = *layout, *retired = state->retired[i];

		same.LJ_STACK_EXTRA = retired->LJ_STACK_EXTRA;
		same.has_opcodes = retired->has_opcodes;
		memcpy(same.opcodes, retired->opcodes, sizeof(same.opcodes));
		if (memcmp(&same, retired, sizeof(same)) != 0)
			continue;
		state->retired[i] = state->retired[--state->retired_count];
		return retired;
	}
	return NULL;
}
