/* SPDX-License-Identifier: MIT */
/* What do we know about a VM, and why? For people to read. */
#include "luastate/explain.h"

#include <stdio.h>

#include "attach/clock.h"
#include "luastate/arch/arch.h"
#include "luastate/derive/derive.h"
#include "luastate/function/library_names.h"
#include "luastate/layout/fields.h"
#include "luastate/state/invariants.h"
#include "luastate/vm/vm_internal.h"

/* Time limit of a search for a VM's version. It makes some reads, unless tables are very large. */
enum { VERSION_NS = 100 * 1000 * 1000 };

size_t luastate_interpreter_count(const struct luastate *state)
{
	return state->interpreter_count;
}

void luastate_interpreter_get(const struct luastate *state, size_t index,
			      struct luastate_interpreter *ret_interpreter)
{
	const struct state_interpreter *interpreter = &state->interpreters[index];

	*ret_interpreter = (struct luastate_interpreter){
		.start = interpreter->start,
		.end = interpreter->end,
		.cframe_bytes = (unsigned)interpreter->shape.size,
		.layout = interpreter->layout,
		.is_derived = interpreter->is_derived,
		.lacks_compiler = interpreter->is_derived && !state_has_compiler(interpreter->own),
		.has_no_compiler = interpreter->is_derived && interpreter->reading &&
				   !interpreter->reading->has_compiler,
	};
}

static const char *family_name(const char *family)
{
	if (strcmp(family, "openresty") == 0)
		return "OpenResty's fork";
	if (strcmp(family, "tarantool") == 0)
		return "Tarantool's fork";
	return "mainline";
}

const char *luastate_fork_of(const struct luastate_layout *layout)
{
	if (strcmp(layout->family, "openresty") == 0)
		return "OpenResty";
	return strcmp(layout->family, "tarantool") == 0 ? "Tarantool" : "LuaJIT";
}

void luastate_describe_layout(const struct luastate_layout *layout, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s, %s, commits %s (%s) to %s (%s)", family_name(layout->family),
		 layout->gc64 ? "GC64" : "without GC64", layout->first, layout->first_date,
		 layout->last, layout->last_date);
}

int luastate_compare_debug(const struct luastate *state, size_t index,
			   luastate_difference_visitor *visit, void *context,
			   const struct luastate_layout **ret_row)
{
	const struct state_interpreter *interpreter = &state->interpreters[index];

	if (!interpreter->own)
		return -1;
	*ret_row = interpreter->row;
	for (size_t i = 0; visit && i < state_field_count; i++) {
		if (state_field_value(interpreter->own, i) ==
			    state_field_value(interpreter->row, i) ||
		    (!state_has_compiler(interpreter->own) &&
		     state_is_of_compiler(state_fields[i].name)))
			continue;
		visit(context, state_fields[i].name, state_field_value(interpreter->row, i),
		      state_field_value(interpreter->own, i),
		      interpreter->is_derived ? derive_evidence(interpreter->source[i]) : NULL);
	}
	return 0;
}

/* ---- Invariants ------------------------------------------------------------------------- */

/** Counts invariants. */
struct score {
	unsigned held, failed;
};

static void count_invariant(void *context, const char *what, uint64_t address, uint64_t value,
			    bool holds)
{
	struct score *score = context;

	(void)what, (void)address, (void)value;
	score->held += holds;
	score->failed += !holds;
}

/* The layout under which the most invariants of the coroutine's VM hold. */
static const struct luastate_layout *
nearest(struct luastate *state, const struct attach_reader *reader, uint64_t L, uint64_t *ret_G)
{
	const struct luastate_layout *best = NULL;
	struct score best_score = { 0 };

	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];
		struct score score = { 0 };
		uint64_t G;

		if (strcmp(layout->arch, state_arch_name) != 0)
			continue;
		G = state_global_of(layout, reader, L);
		if (!G)
			continue;
		state_check_vm(state, layout, reader, G, count_invariant, &score);
		if (!best || score.held > best_score.held ||
		    (score.held == best_score.held && score.failed < best_score.failed)) {
			best = layout;
			best_score = score;
			*ret_G = G;
		}
	}
	return best;
}

int luastate_examine(struct luastate *state, const struct attach_reader *reader, uint64_t L,
		     luastate_invariant_visitor *visit, void *context,
		     struct luastate_examination *ret_examination)
{
	struct failure why;
	const struct luastate_vm *vm = luastate_vm_of(state, reader, L, &why);
	struct luastate_examination examination = { .G = vm ? vm->G : 0 };

	examination.layout = vm ? vm->layout : nearest(state, reader, L, &examination.G);
	if (!examination.layout)
		return -1;
	examination.fits =
		state_check_vm(state, examination.layout, reader, examination.G, visit, context);
	*ret_examination = examination;
	return 0;
}

size_t luastate_fitting_layouts(struct luastate *state, const struct attach_reader *reader,
				uint64_t G, const struct luastate_layout **ret_layouts, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < luastate_layout_count && count < max; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];

		if (strcmp(layout->arch, state_arch_name) == 0 &&
		    state_check_vm(state, layout, reader, G, NULL, NULL))
			ret_layouts[count++] = layout;
	}
	return count;
}

size_t luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines)
{
	*ret_coroutines = state->refused;
	return state->refused_count;
}

/* ---- Version ---------------------------------------------------------------------------- */

int luastate_read_version(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  char *ret_text, size_t size, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	const struct luastate_layout *layout = vm ? vm->layout : NULL;
	uint64_t jit, version, end_ns = clock_now_ns() + VERSION_NS;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	jit = state_get_loaded(vm, reader, "jit", end_ns);
	version =
		jit ? state_table_get(layout, reader, state_object(layout, jit), "version", end_ns)
		    : 0;
	if (state_tag(layout, version) != layout->tag_str)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find jit.version");
	return state_read_string(layout, reader, state_object(layout, version), ret_text, size,
				 why);
}
