/* SPDX-License-Identifier: MIT */
/* Private to luastate: offsets and constants of builds. */
#ifndef LUASTATE_LAYOUT_LAYOUT_H
#define LUASTATE_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A number of a layout, by its name in layouts.table. */
struct state_field {
	const char *name;
	size_t offset; /* of an int32_t in struct luastate_layout */
};

#include "layouts.inc"

extern const struct luastate_layout luastate_layouts[];
extern const size_t luastate_layout_count;

extern const struct state_field state_fields[];
extern const size_t state_field_count;

enum {
	/* Of the fields of layouts.table; there are about 145. */
	STATE_FIELDS_MAX = 192,
	/* What a walk reads of a GCfunc or a lua_State in one go, over all layouts. */
	STATE_OBJECT_MAX = 256,
	/* The same of a global_State. */
	STATE_GLOBAL_MAX = 4096,
	/* GG_State has some 6 KiB. */
	STATE_DISTANCE_MAX = 65536,
	STATE_OPCODES_MAX = 256,
	/* CFRAME_RESUME, CFRAME_UNWIND_FF in the low bits of a link between C frames. */
	STATE_CFRAME_FLAGS = 3,
	/* GCState.currentwhite is before GCState.state, and GCobj's marked before its type; the
	 * whites are LJ_GC_WHITE0 and 1. Source: lj_obj.h, lj_gc.h. */
	STATE_WHITE_FROM_STATE = -1,
	STATE_MARKED_FROM_TYPE = -1,
	STATE_WHITES = 3,
};

/** An opcode that is none of those that are known by name. */
#define STATE_OPCODE_UNKNOWN 255

/** Whether compiled code can be followed: builds without the compiler have no traces, and of some
 *  builds it is not known where they have them. */
static inline bool state_has_compiler(const struct luastate_layout *layout)
{
	return layout->global_State_to_J != LAYOUT_ABSENT;
}

/**
 * An instruction with the opcode that it has in the builds of layouts.table, where all opcodes up
 * to FUNCF have the same numbers. Those from FUNCF on keep the build's own, which the layout has.
 */
static inline uint32_t state_instruction(const struct luastate_layout *layout, uint32_t ins)
{
	return layout->has_opcodes ? (ins & ~(uint32_t)0xff) | layout->opcodes[ins & 0xff] : ins;
}

/** Whether a layout is a row of layouts.table. */
bool state_is_row(const struct luastate_layout *layout);

#endif
