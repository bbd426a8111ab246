/* SPDX-License-Identifier: MIT */
#include "format/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Longest decimal number that a name may end in, sign included. */
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

enum names_role names_role_of(const char *name)
{
	size_t len = strnlen(name, sizeof("lua_cpcall"));

	if (starts_with(name, len, "lua_cpcall"))
		return NAMES_ROLE_CPCALL;
	if (starts_with(name, len, "lua_call") || starts_with(name, len, "lua_pcall"))
		return NAMES_ROLE_CALL;
	return NAMES_ROLE_NONE;
}

static void add_line(struct format_text *text, const char *string)
{
	format_text_add_line(text, string, strlen(string));
}

static void add_trace(struct format_text *text, const struct format_function *function)
{
	format_text_addf(text, NAMES_TRACE_PREFIX "%" PRIu64, function->address);
	if (function->source) {
		format_text_add(text, " ", 1);
		add_line(text, function->source);
		format_text_addf(text, ":%" PRId64, function->first_line);
	}
	format_text_add(text, "]", 1);
}

void names_add_symbol(struct format_text *text, const struct format_function *function,
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
		format_text_add_string(text, NAMES_CFUNC_SUFFIX);
		break;
	default:
		add_line(text, name);
		break;
	}
}

/** Split "TEXT:NUMBER" at its last colon. */
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

/** Read "[trace N]" or "[trace N CHUNK:LINE]". */
static bool parse_trace(const char *name, size_t len, struct names_meaning *meaning)
{
	const char *at = name + strlen(NAMES_TRACE_PREFIX), *end = name + len - 1;
	uint64_t number = 0;

	while (at < end && *at >= '0' && *at <= '9' && number < UINT32_MAX)
		number = number * 10 + (uint64_t)(*at++ - '0');
	meaning->kind = FORMAT_KIND_TRACE;
	meaning->trace = number;
	meaning->name = at;
	meaning->name_len = 0;
	if (at == end)
		return true;
	meaning->name = at + 1;
	return *at == ' ' &&
	       split_line(at + 1, (size_t)(end - at) - 1, &meaning->name_len, &meaning->line);
}

struct names_meaning names_parse_symbol(uint64_t address, const char *name, size_t len)
{
	struct names_meaning meaning = { .name = name, .name_len = len };
	size_t prefix = strlen(NAMES_API_PREFIX);

	if (address == NAMES_TRIGGER_ADDRESS && len == strlen(NAMES_TRIGGER) &&
	    memcmp(name, NAMES_TRIGGER, len) == 0) {
		meaning.trigger = true;
		return meaning;
	}
	if (address < NAMES_LOW_END) {
		if (starts_with(name, len, NAMES_TRACE_PREFIX) && ends_with(name, len, "]")) {
			struct names_meaning trace = meaning;

			if (parse_trace(name, len, &trace))
				return trace;
		}
		meaning.kind = FORMAT_KIND_FAST;
		if (starts_with(name, len, "[") && ends_with(name, len, "]"))
			meaning.kind = FORMAT_KIND_PSEUDO;
		if (starts_with(name, len, NAMES_API_PREFIX)) {
			meaning.kind = FORMAT_KIND_NATIVE;
			meaning.name += prefix;
			meaning.name_len -= prefix;
		}
	}
	if (ends_with(meaning.name, meaning.name_len, NAMES_CFUNC_SUFFIX)) {
		meaning.kind = FORMAT_KIND_CFUNC;
		meaning.name_len -= strlen(NAMES_CFUNC_SUFFIX);
	}
	return meaning;
}

bool names_match_lua(const char *name, size_t len, const char *chunk, size_t chunk_len,
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
