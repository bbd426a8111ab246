/* SPDX-License-Identifier: MIT */
/*
 * Which known trace, of any VM, has machine code at an address?
 *
 * The index is sorted by the machine code. An address belongs to one trace at a time.
 */
#include "luastate/trace/trace_index.h"

#include <stdlib.h>

#include "attach/array.h"

bool trace_index_init(struct luastate *state)
{
	if (!state->trace_index)
		state->trace_index = calloc(TRACE_KEPT_MAX, sizeof(struct trace *));
	return state->trace_index != NULL;
}

/* Index of the first known trace whose machine code ends after @pc. */
static size_t slot_of(const struct luastate *state, uint64_t pc)
{
	struct trace *const *index = state->trace_index;

	return ARRAY_SEARCH(state->trace_index_count, i, index[i]->mcode + index[i]->szmcode <= pc);
}

static void unindex_range(struct luastate *state, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		state->trace_index[i]->indexed = false;
	memmove(state->trace_index + first, state->trace_index + end,
		(state->trace_index_count - end) * sizeof(*state->trace_index));
	state->trace_index_count -= end - first;
}

void trace_index_remove(struct luastate *state, struct trace *trace)
{
	if (!trace->indexed)
		return;
	for (size_t i = slot_of(state, trace->mcode); i < state->trace_index_count; i++)
		if (state->trace_index[i] == trace) {
			unindex_range(state, i, i + 1);
			return;
		}
}

void trace_index_add(struct luastate *state, struct trace *trace)
{
	size_t first = slot_of(state, trace->mcode), end = first;

	while (end < state->trace_index_count &&
	       state->trace_index[end]->mcode < trace->mcode + trace->szmcode)
		end++;
	unindex_range(state, first, end);
	if (state->trace_index_count == TRACE_KEPT_MAX)
		return;
	memmove(state->trace_index + first + 1, state->trace_index + first,
		(state->trace_index_count - first) * sizeof(*state->trace_index));
	state->trace_index[first] = trace;
	state->trace_index_count++;
	trace->indexed = true;
}

static const struct trace *find_at(const struct luastate *state, uint64_t pc)
{
	size_t location = slot_of(state, pc);
	const struct trace *trace =
		location < state->trace_index_count ? state->trace_index[location] : NULL;

	return trace && trace_holds(trace, pc) ? trace : NULL;
}

uint32_t trace_number_at(const struct luastate *state, uint64_t G, uint64_t pc)
{
	const struct trace *trace = find_at(state, pc);

	return trace && trace->key.G == G ? (uint32_t)trace->key.number : 0;
}

uint64_t trace_vm_at(const struct luastate *state, uint64_t pc)
{
	const struct trace *trace = find_at(state, pc);

	return trace ? trace->key.G : 0;
}
