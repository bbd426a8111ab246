/* SPDX-License-Identifier: MIT */
/* How are the target's variables and values, all untrusted, printed for people and as JSON? */
#ifndef CLI_DUMP_DUMP_VALUES_H
#define CLI_DUMP_DUMP_VALUES_H

#include <stdio.h>

#include "format/text.h"
#include "luastate/luastate.h"
#include "luastate/variables.h"

struct json_object;

/** Whether a text has invalid bytes, control characters, invisible characters, or characters that
 * change the direction of writing. */
bool dump_needs_escapes(const char *bytes, size_t len);

/** Append a text of the target with such characters, quotes and backslashes as escapes of Lua's
 * literals. A terminal then only shows the text, whatever its bytes are. */
void dump_escape(struct format_text *text, const char *bytes, size_t len);

/** Bytes to show of a string value: if the value is truncated, without a part of a character. */
size_t dump_shown_bytes(const struct luastate_value *value);

/** Append a value on one line of readable length. */
void dump_add_value(struct format_text *text, const struct luastate_value *value);

/** Print variables on one line each after @p indent blanks: "name = value", with upvalues and
 * varargs marked; then a line if some are missing. */
void dump_print_variables(FILE *file, const struct luastate_variables *variables, int indent);

/** Make a JSON object with all variables of a frame. The keys are an interface: ljdump(1). */
struct json_object *dump_make_variables(const struct luastate_variables *variables);

#endif
