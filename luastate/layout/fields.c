/* SPDX-License-Identifier: MIT */
/* Which fields of a layout may be absent, and which values are possible? */
#include "luastate/layout/fields.h"

#include <string.h>

#include "luastate/layout/machine.h"

int32_t *state_field_at(struct luastate_layout *layout, size_t field)
{
	return (int32_t *)((char *)layout + state_fields[field].offset);
}

int32_t state_field_value(const struct luastate_layout *layout, size_t field)
{
	int32_t value;

	memcpy(&value, (const char *)layout + state_fields[field].offset, sizeof(value));
	return value;
}

/**
 * Members that are read with less than 8 bytes; 0: the size of a reference. Source: LuaJIT v2.1
 * src/lj_obj.h, lj_jit.h.
 */
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

/* Bytes that are read at a member's offset. */
static int32_t width_of(const struct luastate_layout *layout, const char *field)
{
	if (strcmp(field, "global_State.strempty") == 0)
		return layout->GCstr_sizeof;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (strcmp(field, widths[i].field) == 0)
			return widths[i].bytes ? widths[i].bytes : layout->ref_size;
	return 8;
}

/* The size of the structure that contains a field. @return -1 if the field is no member. */
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
		/* All objects begin with it; strings are the smallest objects. */
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

/* The largest value of a number that is no member's offset. */
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

/* Fields that describe only the compiler, the collector or values, and no frame. */
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
	int32_t value = state_field_value(layout, index), room = room_of(layout, field);

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
	/* Each object begins with the reference to the next one, then its mark and its type. */
	if (layout->GCobj_gct <= layout->ref_size)
		return false;
	/* A trace's link to the next object is right before the instructions' address. */
	if (state_has_compiler(layout) &&
	    (layout->GCtrace_ir < layout->ref_size || layout->GCobj_gct >= layout->GCtrace_sizeof ||
	     layout->global_State_to_J > layout->global_State_to_dispatch))
		return false;
	return layout->BC_FUNCF < layout->BC__MAX;
}
