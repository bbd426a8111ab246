/* SPDX-License-Identifier: MIT */
/* Which fields may a build lack, and which values are possible? Private to luastate. */
#ifndef LUASTATE_LAYOUT_FIELDS_H
#define LUASTATE_LAYOUT_FIELDS_H

#include "luastate/layout/layout.h"

/** A field's number in a layout. @param field Its index in state_fields. */
int32_t *state_field_at(struct luastate_layout *layout, size_t field);
int32_t state_field_value(const struct luastate_layout *layout, size_t field);

/**
 * Whether a build may lack a field, or its value may be unknown: only fields that no frame depends
 * on. The fields vmst.* may be unknown too; this function does not cover them.
 */
bool state_may_lack(const char *field);

/** Whether a field belongs to the compiler. All such fields are absent, or none. */
bool state_is_of_compiler(const char *field);

/**
 * Whether all members, as wide as they are read, are inside their structures, and the structures
 * fit into the buffers. True for each row; debug information is untrusted.
 */
bool state_layout_is_bounded(const struct luastate_layout *layout);

#endif
