/* SPDX-License-Identifier: MIT */
#include "shift.h"
#include "luastate/layout/fields.h"

#include <stdlib.h>

enum { WIDTH_REF = 0, WIDTH_STRING = -1 };

/** Members that are no references. */
static const struct {
	const char *name;
	int32_t width;
} widths[] = {
	{ "lua_State.base", 8 },
	{ "lua_State.top", 8 },
	{ "lua_State.cframe", 8 },
	{ "lua_State.stacksize", 4 },
	{ "lua_State.status", 1 },
	{ "global_State.gc_state", 1 },
	{ "global_State.strempty", WIDTH_STRING },
	{ "global_State.stremptyz", 1 },
	{ "global_State.str_mask", 4 },
	{ "global_State.vmstate", 4 },
	{ "global_State.registrytv", 8 },
	{ "jit_State.L", 8 },
	{ "jit_State.trace", 8 },
	{ "jit_State.sizetrace", 4 },
	{ "jit_State.freetrace", 4 },
	{ "jit_State.flags", 4 },
	{ "jit_State.param", 60 },
	{ "jit_State.exitstubgroup", 128 },
	{ "jit_State.penalty", 512 },
	{ "jit_State.parent", 4 },
	{ "jit_State.exitno", 4 },
	{ "jit_State.mcarea", 8 },
	{ "jit_State.mctop", 8 },
	{ "jit_State.mcbot", 8 },
	{ "jit_State.szmcarea", 8 },
	{ "jit_State.szallmcarea", 8 },
	{ "GCtrace.nsnap", 2 },
	{ "GCtrace.nsnapmap", 2 },
	{ "GCtrace.snap", 8 },
	{ "GCtrace.snapmap", 8 },
	{ "GCtrace.nins", 4 },
	{ "GCtrace.nk", 4 },
	{ "GCtrace.szmcode", 4 },
	{ "GCtrace.mcode", 8 },
	{ "GCtrace.traceno", 2 },
	{ "GCtrace.linktype", 1 },
	{ "GCtrace.ir", 8 },
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
	{ "GCproto.numparams", 1 },
	{ "GCproto.sizebc", 4 },
	{ "GCproto.sizekgc", 4 },
	{ "GCproto.sizekn", 4 },
	{ "GCproto.sizept", 4 },
	{ "GCproto.sizeuv", 1 },
	{ "GCproto.flags", 1 },
	{ "GCproto.trace", 2 },
	{ "GCproto.firstline", 4 },
	{ "GCproto.numline", 4 },
	{ "GCfunc.ffid", 1 },
	{ "GCfunc.nupvalues", 1 },
	{ "GCupval.closed", 1 },
	{ "GCupval.immutable", 1 },
	{ "GCfuncC.f", 8 },
	{ "GCstr.hash", 4 },
	{ "GCstr.len", 4 },
	{ "GCtab.hmask", 4 },
	{ "GCtab.asize", 4 },
	{ "GCudata.len", 4 },
	{ "GCcdata.ctypeid", 2 },
	{ "Node.val", 8 },
	{ "Node.key", 8 },
	{ "cframe.nres", 4 },
	{ "cframe.prev", 8 },
};

static const char *const objects[] = { "lua_State", "GCproto", "GCtrace", "GCfunc", "GCupval",
				       "GCstr",	    "GCtab",   "GCudata", "GCcdata" };

/* ---- Fields ----------------------------------------------------------------------------- */

static int32_t *value(struct luastate_layout *layout, size_t field)
{
	return (int32_t *)(void *)((char *)layout + state_fields[field].offset);
}

/* Whether a field is named so: in full, or by its struct alone. GCfuncC is a GCfunc. */
static bool is_named(size_t field, const char *name)
{
	size_t len = strlen(name);
	const char *own = state_fields[field].name;

	return strncmp(own, name, len) == 0 &&
	       (own[len] == '\0' || own[len] == '.' ||
		(strcmp(name, "GCfunc") == 0 && strncmp(own, "GCfuncC.", 8) == 0));
}

static bool is_one_of(size_t field, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_named(field, names[i]))
			return true;
	return false;
}

static bool find_is_number(size_t field)
{
	static const char *const names[] = { "tag",	 "vmst",    "LJ_STACK_EXTRA",
					     "BC_FUNCF", "BC__MAX", "GG_NUM_ASMFF" };

	return is_one_of(field, names, sizeof(names) / sizeof(names[0]));
}

/* Sizes and distances: places where no member begins. */
static bool find_is_extent(size_t field)
{
	static const char *const names[] = { "global_State.to_J", "global_State.to_dispatch",
					     "global_State.to_bcff", "GCfunc.header",
					     "cframe.size" };
	const char *dot = strchr(state_fields[field].name, '.');

	return (dot && strcmp(dot, ".sizeof") == 0) ||
	       is_one_of(field, names, sizeof(names) / sizeof(names[0]));
}

static bool is_gct_name(size_t field)
{
	return is_named(field, "GCobj.gct");
}

/* Of one struct. The type of an object is in each object's head. */
static bool find_together(size_t one, size_t other)
{
	char name[32] = { 0 };
	size_t len = strcspn(state_fields[one].name, ".");

	if (is_gct_name(other) && is_one_of(one, objects, sizeof(objects) / sizeof(objects[0])))
		return true;
	if (is_gct_name(one))
		return is_gct_name(other) ||
		       is_one_of(other, objects, sizeof(objects) / sizeof(objects[0]));
	MUST(len < sizeof(name));
	memcpy(name, state_fields[one].name, len);
	return is_named(other, strcmp(name, "GCfuncC") == 0 ? "GCfunc" : name);
}

static int32_t find_width(size_t field)
{
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (is_named(field, widths[i].name))
			return widths[i].width;
	return WIDTH_REF;
}

/** What the name of a field tells of it: found once, as each build asks for all pairs of them. */
static struct {
	bool is_number, is_extent, is_gct, may_lack;
	int32_t width;
	bool together[STATE_FIELDS_MAX];
} named[STATE_FIELDS_MAX];

static void find_named(void)
{
	static bool found;

	MUST(state_field_count <= STATE_FIELDS_MAX);
	for (size_t i = 0; i < state_field_count && !found; i++) {
		named[i].is_number = find_is_number(i);
		named[i].is_extent = find_is_extent(i);
		named[i].is_gct = is_gct_name(i);
		named[i].may_lack = state_may_lack(state_fields[i].name);
		named[i].width = find_width(i);
		for (size_t k = 0; k < state_field_count; k++)
			named[i].together[k] = find_together(i, k);
	}
	found = true;
}

bool shift_is_number(size_t field)
{
	find_named();
	return named[field].is_number;
}

static bool is_extent(size_t field)
{
	return named[field].is_extent;
}

static bool is_gct(size_t field)
{
	return named[field].is_gct;
}

static bool together(size_t one, size_t other)
{
	return named[one].together[other];
}

static int32_t width(const struct luastate_layout *layout, size_t field)
{
	switch (named[field].width) {
	case WIDTH_REF:
		return layout->ref_size;
	case WIDTH_STRING:
		return layout->GCstr_sizeof;
	default:
		return named[field].width;
	}
}

static size_t field_of(const char *name)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (strcmp(state_fields[i].name, name) == 0)
			return i;
	abort();
}

/* ---- Builds ----------------------------------------------------------------------------- */

/* Whether two members share a byte. */
static bool overlap(struct luastate_layout *layout, size_t one, size_t other)
{
	int32_t a = *value(layout, one), b = *value(layout, other);

	return a < b + width(layout, other) && b < a + width(layout, one);
}

/* Older builds lack some members. */
static bool is_absent(const struct luastate_layout *row, size_t field)
{
	int32_t number;

	memcpy(&number, (const char *)row + state_fields[field].offset, sizeof(number));
	return number == LAYOUT_ABSENT && named[field].may_lack;
}

/* A build in which all members have places of their own, inside their structs. */
static bool is_possible(struct luastate_layout *layout)
{
	for (size_t i = 0; i < state_field_count; i++) {
		if (shift_is_number(i) || is_extent(i) || is_absent(layout, i))
			continue;
		if (*value(layout, i) < 0)
			return false;
		for (size_t k = 0; k < state_field_count; k++) {
			if (k == i || !together(i, k) || shift_is_number(k) || is_absent(layout, k))
				continue;
			if (is_gct(i) && !is_gct(k) && is_extent(k))
				continue;
			if (is_extent(k)
				    ? strncmp(strchr(state_fields[k].name, '.'), ".to_", 4) != 0 &&
					      *value(layout, i) + width(layout, i) >
						      *value(layout, k)
				    : overlap(layout, i, k))
				return false;
		}
	}
	return layout->global_State_to_J >= layout->global_State_sizeof &&
	       layout->global_State_stremptyz ==
		       layout->global_State_strempty + layout->GCstr_sizeof;
}

/* The dispatch table ends where the fast functions' bytecode begins. */
static void lengthen_dispatch(const struct luastate_layout *row, struct luastate_layout *layout)
{
	int32_t before = row->BC__MAX + row->GG_NUM_ASMFF + row->BC_FUNCF;
	int32_t after = layout->BC__MAX + layout->GG_NUM_ASMFF + layout->BC_FUNCF;

	layout->global_State_to_bcff += 8 * (after - before);
}

/* Numbers of one enumeration. */
static bool of_one_enumeration(size_t one, size_t other)
{
	return (is_named(one, "tag") && is_named(other, "tag")) ||
	       (is_named(one, "vmst") && is_named(other, "vmst")) ||
	       (is_named(one, "BC_FUNCF") && is_named(other, "BC__MAX"));
}

static bool shift_number(const struct luastate_layout *row, size_t field, enum shift_kind kind,
			 int32_t amount, struct luastate_layout *layout)
{
	int32_t old = *value(layout, field);
	bool descending = is_named(field, "tag");

	if (is_named(field, "vmst") && old < 0)
		return false;
	*value(layout, field) = old + amount;
	for (size_t i = 0; i < state_field_count; i++) {
		int32_t *other = value(layout, i);

		if (i == field || !of_one_enumeration(field, i) || *other == LAYOUT_ABSENT)
			continue;
		if (kind == SHIFT_TAIL && (descending ? *other < old : *other > old))
			*other += amount;
		else if (*other == old + amount)
			*other = old; /* they changed places */
	}
	if (*value(layout, field) < 0 && !descending)
		return false;
	lengthen_dispatch(row, layout);
	return true;
}

/* The member that lies exactly where this one is now takes its old place. */
static void change_locations(struct luastate_layout *layout, size_t field, int32_t old)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (i != field && together(field, i) && !is_extent(i) && !is_gct(i) &&
		    *value(layout, i) == *value(layout, field) &&
		    width(layout, i) == width(layout, field))
			*value(layout, i) = old;
}

/* GG_State: the lua_State and what follows it are one block. */
static void move_neighbours(size_t field, int32_t amount, struct luastate_layout *layout)
{
	bool global = is_named(field, "global_State");
	bool to_dispatch = is_named(field, "global_State.to_dispatch");
	bool to_bcff = is_named(field, "global_State.to_bcff");

	if (global && !to_dispatch && !to_bcff)
		layout->global_State_to_J += amount;
	if ((global && !to_bcff) || is_named(field, "jit_State"))
		layout->global_State_to_dispatch += amount;
	if (global || is_named(field, "jit_State"))
		layout->global_State_to_bcff += amount;
}

static void shift_tail(const struct luastate_layout *row, size_t field, int32_t amount,
		       struct luastate_layout *layout)
{
	struct luastate_layout old = *row;

	for (size_t i = 0; i < state_field_count; i++)
		if (together(field, i) && *value(&old, i) >= *value(&old, field) &&
		    strncmp(strchr(state_fields[i].name, '.'), ".to_", 4) != 0 &&
		    !(is_gct(i) && !is_gct(field)))
			*value(layout, i) += amount;
	move_neighbours(field, amount, layout);
	/* The empty string is a member of global_State. */
	amount = layout->GCstr_sizeof - row->GCstr_sizeof;
	if (amount)
		shift_tail(layout, field_of("global_State.stremptyz"), amount, layout);
}

bool shift_layout(const struct luastate_layout *row, size_t field, enum shift_kind kind,
		  int32_t amount, struct luastate_layout *ret_layout)
{
	struct luastate_layout before;

	find_named();
	*ret_layout = before = *row;
	if (is_absent(row, field))
		return false;
	if (shift_is_number(field))
		return shift_number(row, field, kind, amount, ret_layout);
	if (kind == SHIFT_TAIL) {
		shift_tail(&before, field, amount, ret_layout);
	} else {
		*value(ret_layout, field) += amount;
		if (!is_extent(field))
			change_locations(ret_layout, field, *value(&before, field));
	}
	return is_possible(ret_layout);
}
