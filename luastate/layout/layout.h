/* SPDX-License-Identifier: MIT */
/* Which offsets and constants does a build have? Private to luastate. */
#ifndef LUASTATE_LAYOUT_LAYOUT_H
#define LUASTATE_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A field of a layout, with its name in layouts.table. */
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
	/* Limit of the fields in layouts.table, which has about 145. */
	STATE_FIELDS_MAX = 192,
	/* Bytes that a walk reads of a GCfunc or a lua_State at once, in any layout. */
	STATE_OBJECT_MAX = 256,
	/* The same for a global_State. */
	STATE_GLOBAL_MAX = 4096,
	/* Limit of distances in GG_State, which has about 6 KiB. */
	STATE_DISTANCE_MAX = 65536,
	STATE_OPCODES_MAX = 256,
	/* CFRAME_RESUME and CFRAME_UNWIND_FF, in the low bits of a link between C frames. */
	STATE_CFRAME_FLAGS = 3,
	/* GCState.currentwhite is right before GCState.state, and an object's marked is right
	 * before its type. The whites are LJ_GC_WHITE0 and 1. Source: lj_obj.h, lj_gc.h. */
	STATE_WHITE_FROM_STATE = -1,
	STATE_MARKED_FROM_TYPE = -1,
	STATE_WHITES = 3,
};

/** An opcode that is not a known one. */
#define STATE_OPCODE_UNKNOWN 255

/** Whether compiled code can be followed: the build has the compiler, and its layout is known. */
static inline bool state_has_compiler(const struct luastate_layout *layout)
{
	return layout->global_State_to_J != LAYOUT_ABSENT;
}

/**
 * Translate an instruction's opcode to its number in layouts.table, where all builds agree on the
 * opcodes before FUNCF. Opcodes from FUNCF on keep the build's own numbers, which the layout has.
 */
static inline uint32_t state_instruction(const struct luastate_layout *layout, uint32_t ins)
{
	return layout->has_opcodes ? (ins & ~(uint32_t)0xff) | layout->opcodes[ins & 0xff] : ins;
}

/** Whether a layout is a row of layouts.table. */
bool state_is_row(const struct luastate_layout *layout);

#endif
