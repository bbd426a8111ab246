/* SPDX-License-Identifier: MIT */
/* Variables and values of the target's, for people and as JSON. All of it is untrusted. */
#ifndef CLI_DUMP_DUMP_VALUES_H
#define CLI_DUMP_DUMP_VALUES_H

#include <stdio.h>

#include "format/text.h"
#include "luastate/luastate.h"
#include "luastate/variables.h"

struct json_object;

/** Whether a text has bytes that are no character, or characters that a terminal obeys, shows
 *  nothing for, or that turn the direction of writing. */
bool dump_needs_escapes(const char *bytes, size_t len);

/** Append a text of the target's so that a terminal only shows it, whatever its bytes are: those
 *  characters, quotes and backslashes in the escapes of Lua's literals. */
void dump_escape(struct format_text *text, const char *bytes, size_t len);

/** Bytes to show of a string value: where it was cut, no part of a character. */
size_t dump_shown_bytes(const struct luastate_value *value);

/** Append a value, in one line of a length that can be read. */
void dump_add_value(struct format_text *text, const struct luastate_value *value);

/** Print variables, one line each with @p indent blanks before it: "name = value", upvalues and
 *  varargs told as such; and a line for what is not all there. */
void dump_print_variables(FILE *file, const struct luastate_variables *variables, int indent);

/** All variables of a frame, as a new JSON object. The keys are an interface: ljdump(1). */
struct json_object *dump_make_variables(const struct luastate_variables *variables);

#endif
