/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_SHIFT_H
#define TESTS_LUASTATE_SHIFT_H

/* Builds that differ from a row of layouts.table in one field, as a change of LuaJIT's source could
 * make them. */

#include "fake_vm.h"

enum shift_kind {
	SHIFT_ALONE, /**< The member has another place, or changed places with another. */
	SHIFT_TAIL,  /**< A member before it was added or removed: all that follows moves. */
	SHIFT_KINDS
};

/**
 * The layout of such a build.
 * @param field  Index in state_fields[].
 * @param amount Bytes for places and sizes; a count for enumerators and other numbers.
 * @return false if no build can be so: members would overlap, or a known one is removed.
 */
bool shift_layout(const struct luastate_layout *row, size_t field, enum shift_kind kind,
		  int32_t amount, struct luastate_layout *ret_layout);

/** Whether a field is a number, not a place or a size in bytes. */
bool shift_is_number(size_t field);

#endif
