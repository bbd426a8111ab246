/* SPDX-License-Identifier: MIT */
/* How are variables printed for people? */
#include "cli/dump/dump_values.h"
#include "format/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	/* Longest text of a value; nobody reads more as one line. */
	VALUE_MAX_BYTES = 1000,
	NAME_MAX_BYTES = 200,
	CHUNK_MAX_BYTES = 100,
	IDENTIFIER_MAX_BYTES = 40,
};

/* ---- Texts ------------------------------------------------------------------------------ */

/** Ranges of control characters, invisible characters, and characters that change the direction of
 * writing; both ends included. Source: ECMA-48, C0 and C1 sets; Unicode 15, general categories Cc,
 * Cf, Zl and Zp. */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	      { 0x600, 0x605 },
	{ 0x61c, 0x61c },   { 0x6dd, 0x6dd },	{ 0x70f, 0x70f },     { 0x180e, 0x180e },
	{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0xe0fff },
};

static bool is_hidden(uint32_t code)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return true;
	return false;
}

/* One character, or an invalid byte. */
static bool escape(struct format_text *text, const char *bytes, size_t size, uint32_t code)
{
	static const char letters[] = "abtnvfr"; /* from 7 on */

	if (size == 0)
		format_text_addf(text, "\\x%02x", (unsigned char)bytes[0]);
	else if (code == '\\' || code == '"')
		format_text_addf(text, "\\%c", (char)code);
	else if (code >= '\a' && code <= '\r')
		format_text_addf(text, "\\%c", letters[code - '\a']);
	else if (size == 1 && is_hidden(code))
		format_text_addf(text, "\\x%02x", (unsigned)code);
	else if (is_hidden(code))
		format_text_addf(text, "\\u{%" PRIx32 "}", code);
	else
		return false;
	return true;
}

bool dump_needs_escapes(const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t code = 0;
		size_t size = format_text_character(bytes + at, len - at, &code);

		if (size == 0 || is_hidden(code))
			return true;
		at += size;
	}
	return false;
}

void dump_escape(struct format_text *text, const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t code = 0;
		size_t size = format_text_character(bytes + at, len - at, &code);

		if (!escape(text, bytes + at, size, code))
			format_text_add(text, bytes + at, size);
		at += size ? size : 1;
	}
}

size_t dump_shown_bytes(const struct luastate_value *value)
{
	size_t len = value->text_bytes;

	if (len == value->size)
		return len;
	/* A character has at most three bytes after its first. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char byte = (unsigned char)value->text[len - back];

		if ((byte & 0xc0) == 0x80)
			continue;
		return byte >= (back == 1 ? 0xc0 : back == 2 ? 0xe0 : 0xf0) ? len - back : len;
	}
	return len;
}

static void add_shown(struct format_text *text, const char *bytes, size_t max)
{
	size_t len = strlen(bytes), cut = format_text_cut(bytes, len, max);

	dump_escape(text, bytes, cut);
	if (cut < len)
		format_text_add_string(text, "...");
}

/* As in Lua's own messages: a file, a name from the application, or the start of the source. */
static void add_chunk(struct format_text *text, const char *chunk)
{
	bool is_named = *chunk == '@' || *chunk == '=';

	if (!is_named)
		format_text_add_string(text, "[string \"");
	add_shown(text, is_named ? chunk + 1 : chunk, CHUNK_MAX_BYTES);
	if (!is_named)
		format_text_add_string(text, "\"]");
}

/* ---- Values ----------------------------------------------------------------------------- */

static void add_number(struct format_text *text, double number)
{
	/* As LuaJIT prints numbers: LUAI_NUMFFORMAT, and no sign for NaN. */
	if (isnan(number))
		format_text_add_string(text, "nan");
	else
		format_text_addf(text, "%.14g", number);
}

static void add_string(struct format_text *text, const struct luastate_value *value)
{
	bool cut = value->text_bytes < value->size;

	format_text_add_string(text, "\"");
	dump_escape(text, value->text, dump_shown_bytes(value));
	format_text_add_string(text, "\"");
	if (cut)
		format_text_addf(text, "... (%" PRIu64 " bytes)", value->size);
}

static void add_function(struct format_text *text, const struct luastate_value *value)
{
	format_text_add_string(text, "function");
	if (value->text) {
		format_text_add_string(text, " ");
		add_shown(text, value->text, NAME_MAX_BYTES);
	}
	if (value->type == LUASTATE_VALUE_BUILTIN) {
		format_text_add_string(text, " (built-in)");
	} else if (value->type == LUASTATE_VALUE_C_FUNCTION) {
		format_text_addf(text, " (C, 0x%" PRIx64 ")", value->code);
	} else {
		format_text_add_string(text, " <");
		if (value->chunkname)
			add_chunk(text, value->chunkname);
		if (value->firstline > 0)
			format_text_addf(text, ":%" PRId64, value->firstline);
		format_text_add_string(text, ">");
	}
}

static void add_userdata(struct format_text *text, const struct luastate_value *value)
{
	format_text_addf(text, "userdata 0x%" PRIx64 " (%" PRIu64 " bytes", value->address,
			 value->size);
	if (value->text) {
		format_text_add_string(text, ", ");
		add_shown(text, value->text, NAME_MAX_BYTES);
	} else if (value->has_metatable) {
		format_text_add_string(text, ", metatable");
	}
	format_text_add_string(text, ")");
}

static bool is_type(const struct luastate_value *value, const char *name)
{
	return value->text && strcmp(value->text, name) == 0;
}

static void add_cdata(struct format_text *text, const struct luastate_value *value)
{
	bool is_int64 = is_type(value, "int64_t"), is_uint64 = is_type(value, "uint64_t");

	if (is_int64 || is_uint64) {
		format_text_addf(text, is_int64 ? "%" PRId64 "LL" : "%" PRIu64 "ULL",
				 value->integer);
		return;
	}
	format_text_add_string(text, "cdata<");
	add_shown(text, value->text ? value->text : "?", NAME_MAX_BYTES);
	format_text_add_string(text, "> ");
	switch (value->cdata_kind) {
	case LUASTATE_CDATA_INTEGER:
		format_text_addf(text, "%" PRId64, value->integer);
		break;
	case LUASTATE_CDATA_UNSIGNED:
		format_text_addf(text, "%" PRIu64, (uint64_t)value->integer);
		break;
	case LUASTATE_CDATA_BOOLEAN:
		format_text_add_string(text, value->boolean ? "true" : "false");
		break;
	case LUASTATE_CDATA_NUMBER:
		add_number(text, value->number);
		break;
	case LUASTATE_CDATA_POINTER:
		format_text_addf(text, "0x%" PRIx64, (uint64_t)value->integer);
		break;
	default:
		format_text_addf(text, "0x%" PRIx64 " (%" PRIu64 " bytes)", value->address,
				 value->size);
	}
}

/* ---- Tables ----------------------------------------------------------------------------- */

static bool is_identifier(const struct luastate_value *key)
{
	if (key->type != LUASTATE_VALUE_STRING || key->text_bytes != key->size || key->size == 0 ||
	    key->size > IDENTIFIER_MAX_BYTES || isdigit((unsigned char)key->text[0]))
		return false;
	for (size_t i = 0; i < key->text_bytes; i++)
		if (!(key->text[i] == '_' ||
		      ((unsigned char)key->text[i] < 0x80 && isalnum((unsigned char)key->text[i]))))
			return false;
	return true;
}

static void add_entry(struct format_text *text, const struct luastate_table *table, size_t index)
{
	const struct luastate_value *key = &table->keys[index];

	if (is_identifier(key)) {
		format_text_addf(text, "%s = ", key->text);
	} else if (key->type != LUASTATE_VALUE_INTEGER || key->integer != (int64_t)index + 1) {
		format_text_add_string(text, "[");
		dump_add_value(text, key);
		format_text_add_string(text, "] = ");
	}
	dump_add_value(text, &table->values[index]);
}

static void add_entries(struct format_text *text, const struct luastate_table *table)
{
	const char *between = "";

	format_text_add_string(text, " {");
	for (size_t i = 0; i < table->entry_count && text->len < VALUE_MAX_BYTES; i++) {
		format_text_add_string(text, between);
		add_entry(text, table, i);
		between = ", ";
	}
	if (table->cut != LUASTATE_TABLE_WHOLE)
		format_text_addf(text, "%s...", between);
	format_text_add_string(text, "}");
}

static void add_table(struct format_text *text, const struct luastate_value *value)
{
	const struct luastate_table *table = value->table;

	format_text_addf(text, "table 0x%" PRIx64, value->address);
	if (!table)
		return;
	format_text_addf(text, " (%" PRIu64 "%s entr%s%s%s)", table->count,
			 table->is_count_cut ? " or more" : "", table->count == 1 ? "y" : "ies",
			 table->has_metatable ? ", metatable" : "",
			 table->cut == LUASTATE_TABLE_INCONSISTENT ? ", not all readable"
			 : table->cut == LUASTATE_TABLE_CYCLE	   ? ", shown around this"
								   : "");
	if (table->entry_count ||
	    (table->cut != LUASTATE_TABLE_DEPTH && table->cut != LUASTATE_TABLE_CYCLE))
		add_entries(text, table);
}

/* Tables are nested at most LUASTATE_VALUES_DEPTH_MAX deep. */
void dump_add_value(struct format_text *text, const struct luastate_value *value)
{
	switch (value->type) {
	case LUASTATE_VALUE_BOOLEAN:
		format_text_add_string(text, value->boolean ? "true" : "false");
		break;
	case LUASTATE_VALUE_INTEGER:
		format_text_addf(text, "%" PRId64, value->integer);
		break;
	case LUASTATE_VALUE_NUMBER:
		add_number(text, value->number);
		break;
	case LUASTATE_VALUE_STRING:
		add_string(text, value);
		break;
	case LUASTATE_VALUE_TABLE:
		add_table(text, value);
		break;
	case LUASTATE_VALUE_FUNCTION:
	case LUASTATE_VALUE_C_FUNCTION:
	case LUASTATE_VALUE_BUILTIN:
		add_function(text, value);
		break;
	case LUASTATE_VALUE_COROUTINE:
		format_text_addf(text, "thread 0x%" PRIx64 " (%s)", value->address,
				 luastate_coroutine_status_name(value->status));
		break;
	case LUASTATE_VALUE_USERDATA:
		add_userdata(text, value);
		break;
	case LUASTATE_VALUE_LIGHTUSERDATA:
		format_text_addf(text, "light userdata 0x%" PRIx64, value->address);
		break;
	case LUASTATE_VALUE_CDATA:
		add_cdata(text, value);
		break;
	case LUASTATE_VALUE_UNAVAILABLE:
	case LUASTATE_VALUE_UNREADABLE:
	case LUASTATE_VALUE_OMITTED:
		format_text_addf(text, "<%s>", luastate_value_type_name(value->type));
		break;
	default:
		format_text_add_string(text, luastate_value_type_name(value->type));
	}
}

/* ---- Variables -------------------------------------------------------------------------- */

static void add_name(struct format_text *text, const struct luastate_variable *variable)
{
	if (variable->kind == LUASTATE_UPVALUE)
		format_text_add_string(text, "upvalue ");
	if (variable->kind == LUASTATE_VARARG)
		format_text_addf(text, "vararg %u", variable->index);
	else if (*variable->name)
		add_shown(text, variable->name, NAME_MAX_BYTES);
	else
		format_text_addf(text, "%u", variable->index);
	format_text_add_string(text, " = ");
}

static void print_variable(FILE *file, const struct luastate_variable *variable, int indent)
{
	struct format_text text = { 0 };
	size_t cut;

	add_name(&text, variable);
	dump_add_value(&text, &variable->value);
	if (text.broken || !text.bytes) {
		fprintf(file, "%*s<out of memory>\n", indent, "");
	} else {
		cut = format_text_cut(text.bytes, text.len, VALUE_MAX_BYTES);
		fprintf(file, "%*s%.*s%s\n", indent, "", (int)cut, text.bytes,
			cut < text.len ? "..." : "");
	}
	format_text_deinit(&text);
}

void dump_print_variables(FILE *file, const struct luastate_variables *variables, int indent)
{
	for (size_t i = 0; i < variables->count; i++)
		print_variable(file, &variables->items[i], indent);
	if (variables->is_stripped)
		fprintf(file, "%*s(stripped: locals have no names)\n", indent, "");
	if (variables->is_truncated)
		fprintf(file, "%*s(more variables were left out)\n", indent, "");
}
