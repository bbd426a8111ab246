/* SPDX-License-Identifier: MIT */
/* Private to luastate: which fields a build may lack, and what they may be. */
#ifndef LUASTATE_LAYOUT_FIELDS_H
#define LUASTATE_LAYOUT_FIELDS_H

#include "luastate/layout/layout.h"

/** The place of a field in a layout. @param field Its index in state_fields. */
int32_t *state_field_at(struct luastate_layout *layout, size_t field);
int32_t state_field_value(const struct luastate_layout *layout, size_t field);

/** Whether a build may have no such field, or it may be unknown where it is: nothing that finds a
 *  frame. Of vmst.* all may be unknown but interp and cfunc. */
bool state_may_lack(const char *field);

/** Whether a field is one of the compiler's: all or none of them are absent. */
bool state_is_of_compiler(const char *field);

/**
 * Whether a layout's members, as they are read, lie within their structures, and these within what
 * they are read into. Holds for each row; debug information is foreign bytes.
 */
bool state_layout_is_bounded(const struct luastate_layout *layout);

#endif
