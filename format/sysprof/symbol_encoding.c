/* SPDX-License-Identifier: MIT */
/* How do symbols carry data that streams have no field for? */
#include "format/sysprof/symbol_encoding.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Ranges before version 0.2.0: names are below the first number, compiled frames start at the
 * second. */
#define OLD_NAMES_END	   65536
#define OLD_COMPILED_FIRST (((uint64_t)1 << 52) + ((uint64_t)1 << 40))

#define NUMBERS_END ((uint64_t)1 << 53)

/* The first range of each location takes two bytes per number, the next one three. Most chains
 * have a name, and names are few, so some of them take one byte. */
const struct symbol_range symbol_ranges[SYMBOL_LOCATIONS][SYMBOL_RANGES] = {
	[SYMBOL_LOCATION_FUNCTION] = { { 512, 12288 },
				       { 65536, (uint64_t)1 << 20 },
				       { (uint64_t)1 << 21, (uint64_t)1 << 51 } },
	[SYMBOL_LOCATION_NAME] = { { 3, 512 },
				   { 16384, 65536 },
				   { (uint64_t)1 << 51, (uint64_t)1 << 52 } },
	[SYMBOL_LOCATION_COMPILED] = { { 12288, 16384 },
				       { (uint64_t)1 << 20, (uint64_t)1 << 21 },
				       { (uint64_t)1 << 52, NUMBERS_END } },
};

/** Longest decimal number at the end of a name, with its sign. */
#define NUMBER_LEN_MAX 20

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	size_t prefix_len = strlen(prefix);

	return len >= prefix_len && memcmp(text, prefix, prefix_len) == 0;
}

static bool ends_with(const char *text, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && memcmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

enum symbol_role symbol_role_of(const char *name)
{
	size_t len = strnlen(name, sizeof("lua_cpcall"));

	if (starts_with(name, len, "lua_cpcall"))
		return SYMBOL_ROLE_CPCALL;
	if (starts_with(name, len, "lua_call") || starts_with(name, len, "lua_pcall"))
		return SYMBOL_ROLE_CALL;
	return SYMBOL_ROLE_NONE;
}

static void add_line(struct format_text *text, const char *string)
{
	format_text_add_line(text, string, strlen(string));
}

static void add_trace(struct format_text *text, const struct format_function *function)
{
	const char *source = function->source;

	format_text_addf(text, LABEL_TRACE_PREFIX "%" PRIu64, function->address);
	if (!source)
		return;
	format_text_add_string(text, *source == '@' ? " @ " : " ");
	add_line(text, source + (*source == '@'));
	format_text_addf(text, ":%" PRId64, function->first_line);
}

void symbol_add_symbol(struct format_text *text, const struct format_function *function,
		       int64_t line)
{
	const char *name = function->name ? function->name : "?";

	switch (function->kind) {
	case FORMAT_KIND_LUA:
		add_line(text, function->source ? function->source : "?");
		format_text_addf(text, ":%" PRId64, line);
		break;
	case FORMAT_KIND_TRACE:
		add_trace(text, function);
		break;
	case FORMAT_KIND_CFUNC:
		add_line(text, name);
		format_text_add_string(text, SYMBOL_CFUNC_SUFFIX);
		break;
	default:
		add_line(text, name);
		break;
	}
}

/** Split "TEXT:NUMBER" at the last colon. */
static bool split_line(const char *text, size_t len, size_t *ret_len, int64_t *ret_line)
{
	char digits[NUMBER_LEN_MAX + 1];
	size_t start = len;
	char *end;

	while (start > 0 && text[start - 1] != ':')
		start--;
	if (start == 0 || start == len || len - start > NUMBER_LEN_MAX)
		return false;
	memcpy(digits, text + start, len - start);
	digits[len - start] = '\0';
	if (strspn(digits, "-0123456789") != len - start)
		return false;
	*ret_line = strtoll(digits, &end, 10);
	*ret_len = start - 1;
	return *end == '\0';
}

/** Parse "trace N", "trace N @ FILE:LINE" or "trace N CHUNK:LINE"; the last form may be in
 * brackets. */
static bool parse_trace(const char *name, size_t len, struct symbol_meaning *meaning)
{
	const char *at = name, *end = name + len, *digits;
	uint64_t number = 0;

	if (starts_with(name, len, "[") && ends_with(name, len, "]")) {
		at++;
		end--;
	}
	if (!starts_with(at, (size_t)(end - at), LABEL_TRACE_PREFIX))
		return false;
	digits = at += strlen(LABEL_TRACE_PREFIX);
	while (at < end && *at >= '0' && *at <= '9' && number < UINT32_MAX)
		number = number * 10 + (uint64_t)(*at++ - '0');
	meaning->kind = FORMAT_KIND_TRACE;
	meaning->trace = number;
	meaning->name = at;
	meaning->name_len = 0;
	if (at == digits || at == end)
		return at != digits;
	if (*at++ != ' ')
		return false;
	meaning->file = end == name + len && starts_with(at, (size_t)(end - at), "@ ");
	meaning->name = meaning->file ? at + 2 : at;
	return split_line(meaning->name, (size_t)(end - meaning->name), &meaning->name_len,
			  &meaning->line);
}

/** Whether the name has the form "NAME [PID]". */
static bool is_process(const char *name, size_t len)
{
	size_t digits = 0;

	if (!ends_with(name, len, "]"))
		return false;
	while (digits + 1 < len && name[len - 2 - digits] >= '0' && name[len - 2 - digits] <= '9')
		digits++;
	return digits > 0 && ends_with(name, len - 1 - digits, " [");
}

static enum symbol_location old_location_of(uint64_t address)
{
	if (address < OLD_NAMES_END)
		return SYMBOL_LOCATION_NAME;
	return address >= OLD_COMPILED_FIRST && address < NUMBERS_END ? SYMBOL_LOCATION_COMPILED
								      : SYMBOL_LOCATION_FUNCTION;
}

enum symbol_location symbol_location_of(uint64_t address, bool numbered)
{
	if (!numbered)
		return old_location_of(address);
	for (unsigned location = 0; location < SYMBOL_LOCATIONS; location++)
		for (unsigned i = 0; i < SYMBOL_RANGES; i++)
			if (address >= symbol_ranges[location][i].first &&
			    address < symbol_ranges[location][i].end)
				return (enum symbol_location)location;
	return SYMBOL_LOCATION_NAME;
}

struct symbol_meaning symbol_parse_symbol(uint64_t address, enum symbol_location location,
					  const char *name, size_t len)
{
	struct symbol_meaning meaning = { .name = name, .name_len = len };
	size_t prefix = strlen(SYMBOL_API_PREFIX);

	if (address == SYMBOL_TRIGGER_ADDRESS && len == strlen(SYMBOL_TRIGGER) &&
	    memcmp(name, SYMBOL_TRIGGER, len) == 0) {
		meaning.trigger = true;
		return meaning;
	}
	if (location == SYMBOL_LOCATION_NAME) {
		struct symbol_meaning trace = meaning;

		if (parse_trace(name, len, &trace))
			return trace;
		meaning.kind = FORMAT_KIND_BUILTIN;
		if (is_process(name, len))
			meaning.kind = FORMAT_KIND_PROCESS;
		else if (starts_with(name, len, "[") && ends_with(name, len, "]"))
			meaning.kind = FORMAT_KIND_PSEUDO;
		if (starts_with(name, len, SYMBOL_API_PREFIX)) {
			meaning.kind = FORMAT_KIND_NATIVE;
			meaning.name += prefix;
			meaning.name_len -= prefix;
		}
	}
	if (ends_with(meaning.name, meaning.name_len, SYMBOL_CFUNC_SUFFIX)) {
		meaning.kind = FORMAT_KIND_CFUNC;
		meaning.name_len -= strlen(SYMBOL_CFUNC_SUFFIX);
	}
	return meaning;
}

void symbol_add_mark(struct format_text *text, const struct label_mark *mark)
{
	format_text_addf(text, "[" LABEL_TRACE_PREFIX "%s%" PRIu32 "]",
			 mark->approximate ? "~" : "", mark->trace);
}

bool symbol_parse_mark(const char *name, size_t len, size_t *ret_len, struct label_mark *ret_mark)
{
	struct label_mark mark = { .compiled = true };
	const char *at, *end;
	size_t start = len;
	uint64_t number = 0;

	if (!ends_with(name, len, "]"))
		return false;
	end = name + len - 1;
	while (start > 0 && name[start - 1] != '[')
		start--;
	at = name + start;
	if (start == 0 || !starts_with(at, (size_t)(end - at), LABEL_TRACE_PREFIX))
		return false;
	at += strlen(LABEL_TRACE_PREFIX);
	mark.approximate = at < end && *at == '~';
	at += mark.approximate;
	if (at == end)
		return false;
	for (; at < end && *at >= '0' && *at <= '9' && number <= UINT32_MAX; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	if (at < end || number > UINT32_MAX)
		return false;
	mark.trace = (uint32_t)number;
	*ret_mark = mark;
	*ret_len = start - 1;
	return true;
}

bool symbol_match_lua(const char *name, size_t len, const char *chunk, size_t chunk_len,
		      int64_t *ret_line)
{
	size_t name_len;
	int64_t line;

	if (!split_line(name, len, &name_len, &line) || name_len != chunk_len)
		return false;
	for (size_t i = 0; i < chunk_len; i++) {
		unsigned char c = (unsigned char)chunk[i];

		if (name[i] != (c < 0x20 || c == 0x7f ? ' ' : chunk[i]))
			return false;
	}
	*ret_line = line;
	return true;
}
