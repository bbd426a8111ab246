/* SPDX-License-Identifier: MIT */
/* Which layout does debug information give? It has exact offsets, sizes and enumerators, so it wins
 * over the table. It has no macros; these come from the most similar row. */
#include "luastate/vm.h"

#include <stdio.h>
#include <stdlib.h>

#include "luastate/arch/arch.h"
#include "luastate/derive/derive.h"
#include "luastate/layout/fields.h"

enum { NAME_PART_MAX = 48 };

/** Fields whose names in DWARF differ from layouts.table: the structure, and members to try. */
static const struct {
	const char *field, *structure, *member, *older;
} renamed[] = {
	{ "global_State.gc_state", "global_State", "gc.state", NULL },
	{ "global_State.gc_root", "global_State", "gc.root", NULL },
	{ "global_State.gc_total", "global_State", "gc.total", NULL },
	{ "global_State.gc_stepmul", "global_State", "gc.stepmul", NULL },
	{ "global_State.gc_allocated", "global_State", "gc.allocated", NULL },
	{ "global_State.lightudseg", "global_State", "gc.lightudseg", NULL },
	{ "global_State.str_mask", "global_State", "str.mask", "strmask" },
	{ "GCobj.gct", "GChead", "gct", NULL },
	{ "GCfunc.ffid", "GCfuncC", "ffid", NULL },
	{ "GCfunc.nupvalues", "GCfuncC", "nupvalues", NULL },
	{ "GCfunc.pc", "GCfuncC", "pc", NULL },
};

/** Fields that are distances from global_State to its neighbours in GG_State. */
static const struct {
	const char *field, *member;
} neighbours[] = {
	{ "global_State.to_J", "J" },
	{ "global_State.to_dispatch", "dispatch" },
	{ "global_State.to_bcff", "bcff" },
};

static const struct {
	const char *field, *enumerator, *other;
} enumerators[] = {
	{ "BC_FUNCF", "BC_FUNCF", NULL },	   { "BC__MAX", "BC__MAX", NULL },
	{ "vmst.interp", "LJ_VMST_INTERP", NULL }, { "vmst.lfunc", "LJ_VMST_LFUNC", NULL },
	{ "vmst.ffunc", "LJ_VMST_FFUNC", NULL },   { "vmst.cfunc", "LJ_VMST_CFUNC", "LJ_VMST_C" },
	{ "vmst.gc", "LJ_VMST_GC", NULL },	   { "vmst.exit", "LJ_VMST_EXIT", NULL },
	{ "vmst.record", "LJ_VMST_RECORD", NULL }, { "vmst.opt", "LJ_VMST_OPT", NULL },
	{ "vmst.asm", "LJ_VMST_ASM", NULL },
};

static bool find_neighbour(const struct luastate_debug *debug, const char *member,
			   int64_t *ret_value)
{
	int64_t from, to;

	if (!debug->member(debug->context, "GG_State", "g", &from) ||
	    !debug->member(debug->context, "GG_State", member, &to))
		return false;
	*ret_value = to - from;
	return true;
}

/* Find "Struct.member" or "Struct.sizeof". */
static bool find_plain(const struct luastate_debug *debug, const char *field, int64_t *ret_value)
{
	const char *dot = strchr(field, '.');
	char structure[NAME_PART_MAX];

	/* C frames are defined in assembler, and type tags are macros. Structures with these names
	 * are unrelated. */
	if (!dot || (size_t)(dot - field) >= sizeof(structure) ||
	    strncmp(field, "cframe.", 7) == 0 || strncmp(field, "tag.", 4) == 0)
		return false;
	memcpy(structure, field, (size_t)(dot - field));
	structure[dot - field] = '\0';
	if (strcmp(dot + 1, "sizeof") == 0)
		return debug->size(debug->context, structure, ret_value);
	return debug->member(debug->context, structure, dot + 1, ret_value);
}

/* Find a field of the table in debug information. @return false if it is not there. */
static bool find_field(const struct luastate_debug *debug, const char *field, int64_t *ret_value)
{
	for (size_t i = 0; i < sizeof(neighbours) / sizeof(neighbours[0]); i++)
		if (strcmp(field, neighbours[i].field) == 0)
			return find_neighbour(debug, neighbours[i].member, ret_value);
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (strcmp(field, renamed[i].field) == 0)
			return debug->member(debug->context, renamed[i].structure,
					     renamed[i].member, ret_value) ||
			       (renamed[i].older &&
				debug->member(debug->context, renamed[i].structure,
					      renamed[i].older, ret_value));
	for (size_t i = 0; i < sizeof(enumerators) / sizeof(enumerators[0]); i++)
		if (strcmp(field, enumerators[i].field) == 0)
			return debug->enumerator(debug->context, enumerators[i].enumerator,
						 ret_value) ||
			       (enumerators[i].other &&
				debug->enumerator(debug->context, enumerators[i].other, ret_value));
	return find_plain(debug, field, ret_value);
}

/** All answers of debug information. */
struct answers {
	int64_t value[STATE_FIELDS_MAX];
	bool known[STATE_FIELDS_MAX];
	size_t count; /* known answers */
};

static void ask_all(const struct luastate_debug *debug, struct answers *ret_answers)
{
	memset(ret_answers, 0, sizeof(*ret_answers));
	for (size_t i = 0; i < state_field_count && i < STATE_FIELDS_MAX; i++) {
		int64_t value = 0;

		if (!find_field(debug, state_fields[i].name, &value) || value < 0 ||
		    value > INT32_MAX)
			continue;
		ret_answers->value[i] = value;
		ret_answers->known[i] = true;
		ret_answers->count++;
	}
}

static size_t count_differences(const struct luastate_layout *layout, const struct answers *answers)
{
	size_t differences = 0;

	for (size_t i = 0; i < state_field_count && i < STATE_FIELDS_MAX; i++)
		differences +=
			answers->known[i] && state_field_value(layout, i) != answers->value[i];
	return differences;
}

static const struct luastate_layout *find_nearest(const struct state_interpreter *interpreter,
						  int64_t ref_size, const struct answers *answers)
{
	const struct luastate_layout *best = NULL;
	size_t best_differences = SIZE_MAX;

	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];
		size_t differences;

		if (strcmp(layout->arch, state_arch_name) != 0 || layout->ref_size != ref_size ||
		    layout->cframe_size != interpreter->shape.size ||
		    layout->cframe_prev != interpreter->shape.prev)
			continue;
		differences = count_differences(layout, answers);
		if (differences < best_differences) {
			best = layout;
			best_differences = differences;
		}
	}
	return best;
}

/* Without the compiler, the dispatch table follows the global state directly. */
static void remove_compiler(struct luastate_layout *layout)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (state_is_of_compiler(state_fields[i].name))
			*state_field_at(layout, i) = LAYOUT_ABSENT;
}

int luastate_use_debug(struct luastate *state, uint64_t code, const struct luastate_debug *debug,
		       struct failure *why)
{
	const struct state_interpreter *found = state_interpreter_at(state, code);
	struct state_interpreter *interpreter =
		found ? &state->interpreters[found - state->interpreters] : NULL;
	const struct luastate_layout *row;
	struct luastate_layout *layout;
	struct answers answers;
	int64_t ref_size = 0;

	if (!interpreter || !debug->size(debug->context, "MRef", &ref_size))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, code,
				   "find LuaJIT's structures in debug information");
	ask_all(debug, &answers);
	/* With a part of the answers the wrong row could win, and fill in the missing fields
	 * wrongly. */
	if (debug->is_late && debug->is_late(debug->context))
		return failure_set(why, FAILURE_LIMIT, 0, 0, code,
				   "find LuaJIT's structures in debug information");
	row = find_nearest(interpreter, ref_size, &answers);
	if (!row || answers.count == 0)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, code,
				   "find LuaJIT's structures in debug information");
	layout = malloc(sizeof(*layout));
	if (!layout)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, code, "keep a layout");
	*layout = *row;
	for (size_t i = 0; i < state_field_count && i < STATE_FIELDS_MAX; i++)
		if (answers.known[i])
			*state_field_at(layout, i) = (int32_t)answers.value[i];
	if (answers.known[DERIVE_FIELD(global_State_to_dispatch)] &&
	    !answers.known[DERIVE_FIELD(global_State_to_J)])
		remove_compiler(layout);
	layout->GCfunc_header = layout->GCfuncC_f + 8;
	if (!state_layout_is_bounded(layout)) {
		free(layout);
		return failure_set(why, FAILURE_INVALID, 0, 0, code,
				   "believe debug information about LuaJIT");
	}
	free(interpreter->own);
	interpreter->own = state_take_retired(state, layout);
	if (interpreter->own)
		free(layout);
	else
		interpreter->own = layout;
	interpreter->row = row;
	interpreter->layout = NULL;
	return 0;
}
