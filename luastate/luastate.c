/* SPDX-License-Identifier: MIT */
/* When does the knowledge of a process begin and end, and when does a sample begin? */
#include "luastate/luastate.h"

#include <stdlib.h>

#include "luastate/definition/definition_names.h"
#include "luastate/function/callables.h"
#include "luastate/function/library_names.h"
#include "luastate/function/proto.h"
#include "luastate/state/present.h"
#include "luastate/trace/trace.h"

struct luastate *luastate_create(void)
{
	struct luastate *state = calloc(1, sizeof(*state));

	if (state)
		state->serial = 1;
	return state;
}

void luastate_reset(struct luastate *state)
{
	for (size_t i = 0; i < state->interpreter_count; i++) {
		free(state->interpreters[i].code);
		free(state->interpreters[i].own);
		free(state->interpreters[i].reading);
	}
	for (size_t i = 0; i < state->retired_count; i++)
		free(state->retired[i]);
	state->epoch++;
	state->interpreter_count = 0;
	state->retired_count = 0;
	state->vm_count = 0;
	state->proven = NULL;
	state->refused_count = 0;
	state_free_definitions(state);
	state_free_protos(state);
	state_free_callables(state);
	state_free_names(state);
	trace_free_all(state);
	free(state->trace_index);
	state->trace_index = NULL;
}

void luastate_destroy(struct luastate *state)
{
	if (!state)
		return;
	luastate_reset(state);
	free(state);
}

/* Verify the known VMs again, so that an image holds what the verification needs. */
static void find_again(struct luastate *state, const struct attach_reader *reader)
{
	size_t count = state->vm_count;
	struct failure why;

	state->vm_count = 0;
	for (size_t i = 0; i < count; i++)
		luastate_vm_of(state, reader, state->vms[i].main_thread, &why);
}

void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader)
{
	state->was_strict = state_is_strict(state);
	state->serial++;
	state->trace_work = 0;
	state->link_work = 0;
	state->unknown_work = state->code_work = 0;
	if (state->thorough)
		find_again(state, reader);
	state_begin_definitions(state);
	/* No one refers to an earlier sample's data any more. */
	if (HASH_COUNT(state->protos) > STATE_FUNCTIONS_MAX ||
	    state->proto_bytes > STATE_PROTO_BYTES_MAX / 2)
		state_free_protos(state);
	if (HASH_COUNT(state->callables) > STATE_FUNCTIONS_MAX)
		state_free_callables(state);
}

void luastate_set_thorough(struct luastate *state, bool thorough)
{
	state->thorough = thorough;
}

void luastate_set_pages(struct luastate *state, luastate_pages_function *pages, void *context)
{
	present_free(state);
	state->pages = pages;
	state->pages_context = context;
}
