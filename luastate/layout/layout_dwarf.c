/* SPDX-License-Identifier: MIT */
/*
 * A layout from debug information. Where a build has it, it tells offsets, sizes and enumerators
 * exactly, so it wins over the table; what it cannot tell (macros) comes from the row that it
 * resembles most.
 */
#include "luastate/arch/arch.h"
#include "luastate/derive/derive.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_PART_MAX = 48 };

/** Fields whose names in layouts.table are not those in DWARF: structure and members to try. */
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

/** Distances from global_State to its neighbours in GG_State. */
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

/* "Struct.member" or "Struct.sizeof". */
static bool find_plain(const struct luastate_debug *debug, const char *field, int64_t *ret_value)
{
	const char *dot = strchr(field, '.');
	char structure[NAME_PART_MAX];

	/* C frames are the assembler's, and type tags are macros: what structures have these names
	 * are others. */
	if (!dot || (size_t)(dot - field) >= sizeof(structure) ||
	    strncmp(field, "cframe.", 7) == 0 || strncmp(field, "tag.", 4) == 0)
		return false;
	memcpy(structure, field, (size_t)(dot - field));
	structure[dot - field] = '\0';
	if (strcmp(dot + 1, "sizeof") == 0)
		return debug->size(debug->context, structure, ret_value);
	return debug->member(debug->context, structure, dot + 1, ret_value);
}

/* What debug information says of a field of the table. @return false if it cannot. */
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

static int32_t *field_of(struct luastate_layout *layout, size_t index)
{
	return (int32_t *)((char *)layout + state_fields[index].offset);
}

static int32_t value_of(const struct luastate_layout *layout, size_t index)
{
	int32_t value;

	memcpy(&value, (const char *)layout + state_fields[index].offset, sizeof(value));
	return value;
}

/** All that debug information says. */
struct answers {
	int64_t value[STATE_FIELDS_MAX];
	bool known[STATE_FIELDS_MAX];
	size_t count; /* of the known */
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
		differences += answers->known[i] && value_of(layout, i) != answers->value[i];
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

/** Members that are narrower than 8 bytes, as they are read; 0: the size of a reference. Source:
 *  LuaJIT v2.1 src/lj_obj.h, lj_jit.h. */
static const struct {
	const char *field;
	int32_t bytes;
} widths[] = {
	{ "lua_State.glref", 0 },
	{ "lua_State.maxstack", 0 },
	{ "lua_State.stack", 0 },
	{ "lua_State.stacksize", 4 },
	{ "lua_State.status", 1 },
	{ "global_State.lightudseg", 0 },
	{ "global_State.ctype_state", 0 },
	{ "global_State.gc_state", 1 },
	{ "global_State.gc_root", 0 },
	{ "global_State.gc_total", 0 },
	{ "global_State.stremptyz", 1 },
	{ "global_State.str_mask", 4 },
	{ "global_State.vmstate", 4 },
	{ "global_State.mainthref", 0 },
	{ "global_State.cur_L", 0 },
	{ "global_State.jit_base", 0 },
	{ "GCtrace.nsnap", 4 },
	{ "GCtrace.nins", 4 },
	{ "GCtrace.nk", 4 },
	{ "GCtrace.nsnapmap", 4 },
	{ "GCtrace.startpt", 0 },
	{ "GCtrace.startpc", 0 },
	{ "GCtrace.szmcode", 4 },
	{ "GCtrace.traceno", 4 },
	{ "GCtrace.linktype", 1 },
	{ "GCtrace.startins", 4 },
	{ "GCtrace.mcloop", 4 },
	{ "GCtrace.nchild", 2 },
	{ "GCtrace.spadjust", 2 },
	{ "GCtrace.link", 2 },
	{ "GCtrace.root", 2 },
	{ "SnapShot.ref", 2 },
	{ "SnapShot.mcofs", 2 },
	{ "SnapShot.nslots", 1 },
	{ "SnapShot.nent", 1 },
	{ "SnapShot.count", 1 },
	{ "HotPenalty.val", 2 },
	{ "HotPenalty.reason", 2 },
	{ "GCobj.gct", 1 },
	{ "GCproto.gclist", 0 },
	{ "GCproto.sizebc", 4 },
	{ "GCproto.k", 0 },
	{ "GCproto.uv", 0 },
	{ "GCproto.sizekgc", 4 },
	{ "GCproto.sizekn", 4 },
	{ "GCproto.sizept", 4 },
	{ "GCproto.sizeuv", 1 },
	{ "GCproto.flags", 1 },
	{ "GCproto.trace", 2 },
	{ "GCproto.chunkname", 0 },
	{ "GCproto.firstline", 4 },
	{ "GCproto.numline", 4 },
	{ "GCproto.lineinfo", 0 },
	{ "GCproto.uvinfo", 0 },
	{ "GCproto.varinfo", 0 },
	{ "GCproto.numparams", 1 },
	{ "GCfunc.ffid", 1 },
	{ "GCfunc.nupvalues", 1 },
	{ "GCfunc.pc", 0 },
	{ "GCfuncL.uvptr", 0 },
	{ "GCupval.closed", 1 },
	{ "GCupval.immutable", 1 },
	{ "GCupval.v", 0 },
	{ "GCstr.hash", 4 },
	{ "GCstr.len", 4 },
	{ "GCtab.node", 0 },
	{ "GCtab.hmask", 4 },
	{ "GCtab.array", 0 },
	{ "GCtab.metatable", 0 },
	{ "GCtab.asize", 4 },
	{ "GCudata.len", 4 },
	{ "GCudata.metatable", 0 },
	{ "GCcdata.ctypeid", 2 },
};

/* Bytes that are read at a member. */
static int32_t width_of(const struct luastate_layout *layout, const char *field)
{
	if (strcmp(field, "global_State.strempty") == 0)
		return layout->GCstr_sizeof;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (strcmp(field, widths[i].field) == 0)
			return widths[i].bytes ? widths[i].bytes : layout->ref_size;
	return 8;
}

/* The size of the structure that a field is a member of. @return -1 if it is no member. */
static int32_t room_of(const struct luastate_layout *layout, const char *field)
{
	const struct {
		const char *structure;
		int32_t size;
	} structures[] = {
		{ "lua_State.", layout->lua_State_sizeof },
		{ "global_State.", layout->global_State_sizeof },
		{ "GCtrace.", layout->GCtrace_sizeof },
		{ "SnapShot.", layout->SnapShot_sizeof },
		{ "HotPenalty.", layout->HotPenalty_sizeof },
		{ "GCproto.", layout->GCproto_sizeof },
		{ "GCfunc.", layout->GCfunc_header },
		{ "GCfuncC.", layout->GCfunc_header },
		{ "GCupval.", layout->GCupval_sizeof },
		{ "GCstr.", layout->GCstr_sizeof },
		{ "GCtab.", layout->GCtab_sizeof },
		{ "GCudata.", layout->GCudata_sizeof },
		{ "GCcdata.", layout->GCcdata_sizeof },
		{ "Node.", layout->Node_sizeof },
		{ "cframe.", layout->cframe_size },
		/* All objects begin with it; strings are the smallest. */
		{ "GCobj.", layout->GCstr_sizeof },
	};

	if (strncmp(field, "global_State.to_", 16) == 0)
		return -1;
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
		if (strncmp(field, structures[i].structure, strlen(structures[i].structure)) == 0)
			return structures[i].size;
	return -1;
}

static bool is_size(const char *field)
{
	return strcmp(strchr(field, '.') ? strchr(field, '.') : "", ".sizeof") == 0 ||
	       strcmp(field, "GCfunc.header") == 0 || strcmp(field, "cframe.size") == 0;
}

/* The most that a number which is no member can be. */
static int32_t bound_of(const char *field)
{
	if (strncmp(field, "global_State.to_", 16) == 0 || strncmp(field, "jit_State.", 10) == 0)
		return STATE_DISTANCE_MAX;
	if (strcmp(field, "global_State.sizeof") == 0)
		return STATE_GLOBAL_MAX - 8;
	if (strncmp(field, "BC_", 3) == 0)
		return STATE_OPCODES_MAX;
	if (strncmp(field, "vmst.", 5) == 0)
		return 32;
	return STATE_OBJECT_MAX - 16;
}

/* What only tells of the compiler, the collector or values, and of no frame. */
bool state_may_lack(const char *field)
{
	static const char *const fields[] = {
		"SnapShot.mcofs",	   "global_State.gc_allocated", "global_State.lightudseg",
		"global_State.gc_state",   "global_State.gc_root",	"global_State.gc_total",
		"global_State.gc_stepmul", "global_State.ctype_state",	"jit_State.flags",
		"jit_State.param",	   "jit_State.penalty",		"jit_State.mcarea",
		"jit_State.mctop",	   "jit_State.mcbot",		"jit_State.szmcarea",
		"jit_State.szallmcarea",
	};

	if (!STATE_STUBS_SHARED && strcmp(field, "jit_State.exitstubgroup") == 0)
		return true;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(field, fields[i]) == 0)
			return true;
	return false;
}

bool state_is_of_compiler(const char *field)
{
	static const char *const structures[] = { "jit_State.", "GCtrace.", "SnapShot.",
						  "HotPenalty.", "global_State.to_J" };

	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
		if (strncmp(field, structures[i], strlen(structures[i])) == 0)
			return true;
	return false;
}

static bool is_field_bounded(const struct luastate_layout *layout, size_t index)
{
	const char *field = state_fields[index].name;
	int32_t value = value_of(layout, index), room = room_of(layout, field);

	if (value == LAYOUT_ABSENT)
		return state_may_lack(field) || strncmp(field, "vmst.", 5) == 0 ||
		       (state_is_of_compiler(field) && !state_has_compiler(layout));
	if (room < 0 || is_size(field))
		return (value >= 0 || strncmp(field, "tag.", 4) == 0) && value <= bound_of(field);
	return value >= 0 && value <= room - width_of(layout, field);
}

bool state_layout_is_bounded(const struct luastate_layout *layout)
{
	const int32_t objects[] = { layout->lua_State_sizeof, layout->GCproto_sizeof,
				    layout->GCfunc_header,    layout->GCtab_sizeof,
				    layout->GCupval_sizeof,   layout->GCudata_sizeof,
				    layout->GCcdata_sizeof };

	for (size_t i = 0; i < state_field_count; i++)
		if (!is_field_bounded(layout, i))
			return false;
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (layout->GCobj_gct >= objects[i])
			return false;
	/* The link to the next object is right before the instructions' address. */
	if (state_has_compiler(layout) &&
	    (layout->GCtrace_ir < layout->ref_size || layout->GCobj_gct >= layout->GCtrace_sizeof ||
	     layout->global_State_to_J > layout->global_State_to_dispatch))
		return false;
	/* Behind what is read of every function. */
	if (layout->GCfuncL_uvptr < 0)
		return false;
	return layout->BC_FUNCF < layout->BC__MAX;
}

/* Without the compiler there is nothing between the global state and the dispatch table. */
static void remove_compiler(struct luastate_layout *layout)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (state_is_of_compiler(state_fields[i].name))
			*field_of(layout, i) = LAYOUT_ABSENT;
}

/* The same layout of a copy that is no longer mapped: a program that loads and unloads LuaJIT over
 * and over needs no more than one. What a VM tells may have been filled in. */
static struct luastate_layout *take_retired(struct luastate *state,
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
	/* A row chosen by a part of the answers would fill in the others as it likes. */
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
			*field_of(layout, i) = (int32_t)answers.value[i];
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
	interpreter->own = take_retired(state, layout);
	if (interpreter->own)
		free(layout);
	else
		interpreter->own = layout;
	interpreter->row = row;
	interpreter->layout = NULL;
	return 0;
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
		if (value_of(interpreter->own, i) == value_of(interpreter->row, i) ||
		    (!state_has_compiler(interpreter->own) &&
		     state_is_of_compiler(state_fields[i].name)))
			continue;
		visit(context, state_fields[i].name, value_of(interpreter->row, i),
		      value_of(interpreter->own, i),
		      interpreter->is_derived ? derive_evidence(interpreter->source[i]) : NULL);
	}
	return 0;
}
