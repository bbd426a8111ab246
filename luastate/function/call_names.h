/* SPDX-License-Identifier: MIT */
/* Private to luastate: which name do a function's calls give it? */
#ifndef LUASTATE_FUNCTION_CALL_NAMES_H
#define LUASTATE_FUNCTION_CALL_NAMES_H

#include "luastate/function/proto.h"

/** Bytes of packed names that the search for one name may read. Few functions have more. */
enum { STATE_PACKED_NAMES_MAX = 65536 };

/**
 * Derive a callee's name from the call instruction at @p pc of @p caller.
 * @param bytes_left Bytes of packed names that may be read; lowered by the number read. At 0 the
 * search saw only a part of them.
 * @return The name's rank: 0 no name, 1 local or upvalue, 2 method or field, 3 global.
 */
int state_name_call(const struct luastate_layout *layout, const struct state_proto *caller,
		    const struct attach_reader *reader, uint64_t pc, size_t *bytes_left,
		    char *ret_name, size_t size);

/** A function's name without the names of the tables that hold it. */
const char *state_last_name(const char *name);

#endif
