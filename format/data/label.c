/* SPDX-License-Identifier: MIT */
/* How is a frame described in words, and how are such words parsed? */
#include "format/data/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/text.h"
#include "format/text/builtin_names.h"

/** A chunk name can be a whole program; labels show its beginning. */
#define CHUNK_SHOWN_MAX 256

#define LABEL_COMPILED	  "_[j]"
#define LABEL_APPROXIMATE "~_[j]"

void label_deinit(struct label *label)
{
	free(label->text);
	*label = (struct label){ 0 };
}

static int copy(struct label *label, const char *text, size_t len, struct failure *why)
{
	if (!ARRAY_RESERVE(label->text, label->capacity, len + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a frame's name");
	if (len)
		memcpy(label->text, text, len);
	label->text[len] = '\0';
	return 0;
}

static bool take_end(char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	if (len < end_len || strcmp(text + len - end_len, end) != 0)
		return false;
	text[len - end_len] = '\0';
	return true;
}

static void take_mark(struct label *label)
{
	label->mark.approximate = take_end(label->text, LABEL_APPROXIMATE);
	label->mark.compiled = label->mark.approximate || take_end(label->text, LABEL_COMPILED);
}

/** Remove the suffix for a kind. @return Whether there is one. */
static bool take_kind(struct label *label, enum format_kind *ret_kind)
{
	char end[sizeof("_[x]")];

	for (int kind = 0; kind < FORMAT_KIND_COUNT; kind++) {
		const char *suffix = label_kind_suffix((enum format_kind)kind);

		/* Traces have other marks. */
		if (!*suffix || kind == FORMAT_KIND_TRACE)
			continue;
		snprintf(end, sizeof(end), "_[%s]", suffix);
		if (take_end(label->text, end)) {
			*ret_kind = (enum format_kind)kind;
			return true;
		}
	}
	return false;
}

/** Remove ":" and a line at the end of @p text; built-ins have line -1. */
static bool take_line(char *text, int64_t *ret_line)
{
	char *colon = strrchr(text, ':'), *end;
	int64_t line;

	if (!colon || colon == text || colon[1] == '\0' || colon[1] == ' ' || colon[1] == '+')
		return false;
	line = strtol(colon + 1, &end, 10);
	if (*end != '\0' || line < -1 || line > INT32_MAX)
		return false;
	*colon = '\0';
	*ret_line = line;
	return true;
}

static void set_lua(struct label *label, char *name, char *source, int64_t line)
{
	label->function = (struct format_function){
		.kind = FORMAT_KIND_LUA, .name = name, .source = source, .first_line = line
	};
	label->line = line < 0 ? 0 : (uint32_t)line;
}

/** Parse "NAME (SOURCE:LINE)", or only "SOURCE:LINE" if it begins like a chunk's name. */
static bool take_lua(struct label *label)
{
	char *text = label->text, *bracket;
	size_t len = strlen(text);
	int64_t line;

	if ((*text == '@' || *text == '=') && take_line(text, &line)) {
		set_lua(label, NULL, text, line);
		return true;
	}
	bracket = strstr(text, " (");
	if (!bracket || bracket == text || text[len - 1] != ')')
		return false;
	text[len - 1] = '\0';
	if (take_line(bracket + 2, &line)) {
		*bracket = '\0';
		set_lua(label, text, bracket + 2, line);
		return true;
	}
	text[len - 1] = ')';
	return false;
}

/** Parse "trace N", "trace N @ file:line" or "trace N chunk:line". */
static bool take_trace(struct label *label)
{
	char *text = label->text, *end;
	size_t prefix = strlen(LABEL_TRACE_PREFIX);
	uint64_t number;
	int64_t line = 0;

	if (strncmp(text, LABEL_TRACE_PREFIX, prefix) != 0 || text[prefix] < '0' ||
	    text[prefix] > '9')
		return false;
	number = strtoul(text + prefix, &end, 10);
	if (*end != '\0' && (*end != ' ' || !take_line(end + 1, &line)))
		return false;
	if (strncmp(end, " @ ", 3) == 0) {
		end += 2;
		*end = '@'; /* chunks mark a file's name with "@" */
	} else if (*end == ' ') {
		end++;
	}
	label->function = (struct format_function){ .kind = FORMAT_KIND_TRACE,
						    .address = number,
						    .source = *end ? end : NULL,
						    .first_line = line };
	return true;
}

/** Whether the text is "NAME [PID]". */
static bool is_process(const char *text)
{
	const char *bracket = strrchr(text, '[');
	size_t digits = bracket ? strspn(bracket + 1, "0123456789") : 0;

	return bracket && bracket > text + 1 && bracket[-1] == ' ' && digits > 0 &&
	       strcmp(bracket + 1 + digits, "]") == 0;
}

int label_parse(struct label *label, const char *text, size_t len, struct failure *why)
{
	enum format_kind kind = FORMAT_KIND_NATIVE;
	uint64_t number;
	bool is_told;

	if (copy(label, text, len, why))
		return -1;
	label->function = (struct format_function){ 0 };
	label->line = 0;
	take_mark(label);
	is_told = !label->mark.compiled && take_kind(label, &kind) && kind != FORMAT_KIND_LUA;
	if (is_told) {
		label->function.name = label->text;
		label->function.kind = kind;
		return 0;
	}
	if (take_trace(label)) {
		label->mark = (struct label_mark){ 0 }; /* a trace is compiled by its kind */
		return 0;
	}
	if (take_lua(label))
		return 0;
	len = strlen(label->text);
	label->function.name = label->text;
	if (len > 2 && label->text[0] == '[' && label->text[len - 1] == ']')
		label->function.kind = FORMAT_KIND_PSEUDO;
	else if (is_process(label->text))
		label->function.kind = FORMAT_KIND_PROCESS;
	/* Only names with a library: others, such as select and next, may be C functions. */
	else if (strchr(label->text, '.') && format_ffname_find(label->text, &number))
		label->function.kind = FORMAT_KIND_BUILTIN;
	else
		label->function.kind = FORMAT_KIND_NATIVE;
	return 0;
}

const char *label_kind_suffix(enum format_kind kind)
{
	static const char *const suffixes[FORMAT_KIND_COUNT] = {
		[FORMAT_KIND_NATIVE] = "",   [FORMAT_KIND_LUA] = "l",	[FORMAT_KIND_BUILTIN] = "b",
		[FORMAT_KIND_CFUNC] = "c",   [FORMAT_KIND_TRACE] = "j", [FORMAT_KIND_PSEUDO] = "a",
		[FORMAT_KIND_PROCESS] = "p", [FORMAT_KIND_VM] = "v",
	};

	return (unsigned)kind < FORMAT_KIND_COUNT && suffixes[kind] ? suffixes[kind] : "";
}

static void add_location(struct format_text *text, const char *chunk, int64_t line)
{
	size_t len = strlen(chunk);

	format_text_add_shown(text, chunk, format_text_cut(chunk, len, CHUNK_SHOWN_MAX));
	if (len > CHUNK_SHOWN_MAX)
		format_text_add_string(text, "...");
	format_text_addf(text, ":%" PRId64, line);
}

static void add_name(struct format_text *text, const char *name)
{
	format_text_add_shown(text, name, format_text_cut(name, strlen(name), LABEL_NAME_MAX));
}

/** Append a trace: a file's name stands alone, other chunk names are as in the VM. */
static void add_trace(struct format_text *text, uint64_t number, const char *location)
{
	bool file = *location == '@';

	format_text_addf(text, "trace %" PRIu64 "%s%s", number,
			 file	     ? " @ "
			 : *location ? " "
				     : "",
			 location + file);
}

void label_describe(struct format_text *text, struct format_text *location,
		    const struct format_function *function, int64_t line)
{
	if (function->kind == FORMAT_KIND_LUA)
		add_location(location, function->source ? function->source : "?", line);
	else if (function->kind == FORMAT_KIND_TRACE && function->source)
		add_location(location, function->source, function->first_line);
	if (function->kind == FORMAT_KIND_TRACE)
		add_trace(text, function->address, location->len ? location->bytes : "");
	else if (function->kind == FORMAT_KIND_LUA && !function->name)
		format_text_add(text, location->bytes, location->len);
	else
		add_name(text, function->name ? function->name : "?");
	if (function->kind == FORMAT_KIND_LUA && function->name && !location->broken)
		format_text_addf(text, " (%s)", location->bytes);
}
