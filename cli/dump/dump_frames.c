/* SPDX-License-Identifier: MIT */
/* How is a stack printed, for people and as JSON? The keys are an interface: ljdump(1). */
#include "cli/dump/dump.h"
#include "format/text.h"

#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json_keys.h"
#include "cli/dump/dump_values.h"

enum {
	NAME_MAX_BYTES = 150,
	CHUNK_MAX_BYTES = 300,
	CELL_MAX = CHUNK_MAX_BYTES + 64,
	/* Longer names push the rest of their line to the right. */
	NAME_WIDTH_MAX = 40,
	VARIABLES_INDENT = 8,
};

/* ---- Cells ------------------------------------------------------------------------------ */

/** Names of a kind. */
struct kind_words {
	const char *text, *json;
};

static const struct kind_words *words_of(enum format_kind kind)
{
	static const struct kind_words words[FORMAT_KIND_COUNT] = {
		[FORMAT_KIND_NATIVE] = { "native", "native" },
		[FORMAT_KIND_LUA] = { "Lua", "lua" },
		[FORMAT_KIND_BUILTIN] = { "built-in", "built-in" },
		[FORMAT_KIND_CFUNC] = { "C", "c" },
		[FORMAT_KIND_TRACE] = { "trace", "trace" },
		[FORMAT_KIND_PSEUDO] = { "-", "pseudo" },
		[FORMAT_KIND_PROCESS] = { "-", "process" },
		[FORMAT_KIND_VM] = { "LuaJIT", "luajit" },
	};

	return &words[kind];
}

/* Columns of a text: all bytes except UTF-8 continuation bytes. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Write a text of the process, cleaned for a terminal. */
static void write_shown(const char *text, size_t max, char *ret_text, size_t size)
{
	char *copy = format_clean_copy(text);

	snprintf(ret_text, size, "%.*s", copy ? (int)format_text_cut(copy, strlen(copy), max) : 1,
		 copy ? copy : "?");
	free(copy);
}

/* As in Lua's own messages: a file, a name from the application, or the start of the source. */
static void write_chunk(const char *chunk, char *ret_text)
{
	char shown[CHUNK_MAX_BYTES + 1];
	size_t line = strcspn(chunk, "\r\n");
	bool is_named = *chunk == '@' || *chunk == '=';

	write_shown(is_named ? chunk + 1 : chunk,
		    is_named || line > CHUNK_MAX_BYTES ? CHUNK_MAX_BYTES : line, shown,
		    sizeof(shown));
	snprintf(ret_text, CELL_MAX, is_named ? "%s" : "[string \"%s\"]", shown);
}

static void write_line(const char *chunk, int64_t line, char *ret_text)
{
	size_t len;

	write_chunk(chunk, ret_text);
	len = strlen(ret_text);
	if (line > 0)
		snprintf(ret_text + len, CELL_MAX - len, ":%" PRId64, line);
}

static void write_location(const struct daemon_frame *frame, char *ret_text)
{
	ret_text[0] = '\0';
	if (!frame->source)
		return;
	if (frame->kind == FORMAT_KIND_LUA)
		write_line(frame->source, frame->line, ret_text);
	else if (frame->kind == FORMAT_KIND_TRACE)
		write_line(frame->source, frame->first_line, ret_text);
	else
		write_shown(frame->source, CHUNK_MAX_BYTES, ret_text, CELL_MAX);
}

/* A function without a name is shown by the location of its definition. */
static void write_unnamed(const struct daemon_frame *frame, char *ret_text)
{
	char location[CELL_MAX];

	snprintf(ret_text, CELL_MAX, "?");
	if (frame->kind == FORMAT_KIND_TRACE) {
		snprintf(ret_text, CELL_MAX, "trace %" PRIu64, frame->pc);
	} else if (frame->kind == FORMAT_KIND_LUA && frame->source && frame->first_line > 0) {
		write_line(frame->source, frame->first_line, location);
		snprintf(ret_text, CELL_MAX, "function <%.*s>",
			 (int)format_text_cut(location, strlen(location), CHUNK_MAX_BYTES),
			 location);
	}
}

static void write_name(const struct daemon_frame *frame, char *ret_text)
{
	if (frame->name)
		write_shown(frame->name, NAME_MAX_BYTES, ret_text, CELL_MAX);
	else
		write_unnamed(frame, ret_text);
}

/* ---- For people ------------------------------------------------------------------------- */

static int name_width(const struct daemon_stack *stack)
{
	char name[CELL_MAX];
	int width = 0;

	for (size_t i = 0; i < stack->count; i++) {
		int own;

		write_name(&stack->frames[i], name);
		own = width_of(name);
		if (own > width && own <= NAME_WIDTH_MAX)
			width = own;
	}
	return width;
}

static void print_frame(FILE *file, const struct daemon_frame *frame, int width)
{
	char name[CELL_MAX], location[CELL_MAX];
	int blanks;

	write_name(frame, name);
	write_location(frame, location);
	fprintf(file, "%-8s  %s", words_of(frame->kind)->text, name);
	blanks = width > width_of(name) ? width - width_of(name) : 0;
	if (*location)
		fprintf(file, "%*s  %s", blanks, "", location);
	if (frame->trace && frame->kind != FORMAT_KIND_TRACE)
		fprintf(file, "  [trace %s%" PRIu32 "]", frame->approximate ? "~" : "",
			frame->trace);
	fputc('\n', file);
}

/* @return NULL if nothing is missing. */
static const char *explain_outcome(enum daemon_outcome outcome)
{
	switch (outcome) {
	case DAEMON_INCONSISTENT:
		return "the VM was in an inconsistent state";
	case DAEMON_TRUNCATED:
		return "a stack is longer than its copy";
	case DAEMON_UNWOUND:
		return "native frames that cannot be unwound";
	default:
		return NULL;
	}
}

void dump_print_frames(FILE *file, const struct daemon_stack *stack, int indent)
{
	const char *why = explain_outcome(stack->outcome);
	int width = name_width(stack), digits = snprintf(NULL, 0, "%zu", stack->count);

	for (size_t i = 0; i < stack->count; i++) {
		fprintf(file, "%*s#%-*zu  ", indent, "", digits, i);
		print_frame(file, &stack->frames[i], width);
		if (stack->frames[i].variables)
			dump_print_variables(file, stack->frames[i].variables,
					     indent + VARIABLES_INDENT);
	}
	if (why)
		fprintf(file, "%*spartial: %s\n", indent, "", why);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *make_frame(const struct daemon_frame *frame)
{
	struct json_object *object = json_object_new_object();
	bool has_chunk = frame->kind == FORMAT_KIND_LUA || frame->kind == FORMAT_KIND_TRACE;

	json_keys_add_word(object, "kind", words_of(frame->kind)->json);
	json_keys_add_text(object, "name", frame->name);
	if (has_chunk) {
		json_keys_add_text(object, "chunk", frame->source);
		json_keys_add_number(object, "line", frame->line);
		json_object_object_add(object, "first_line",
				       json_object_new_int64(frame->first_line));
	} else if (frame->source) {
		json_keys_add_text(object, "module", frame->source);
	}
	if (frame->kind == FORMAT_KIND_TRACE)
		json_keys_add_number(object, "trace", frame->pc);
	else if (frame->trace)
		json_keys_add_number(object, "trace", frame->trace);
	if (frame->trace)
		json_keys_add_flag(object, "approximate", frame->approximate);
	if (frame->kind != FORMAT_KIND_TRACE && frame->pc)
		json_keys_add_address(object, "address", frame->pc);
	if (frame->variables)
		json_object_object_add(object, "variables", dump_make_variables(frame->variables));
	return object;
}

static void add_address_or_null(struct json_object *object, const char *key, uint64_t address)
{
	if (address)
		json_keys_add_address(object, key, address);
	else
		json_object_object_add(object, key, NULL);
}

void dump_add_frames(struct json_object *object, const struct daemon_stack *stack)
{
	struct json_object *list = json_object_new_array();

	add_address_or_null(object, "global_state", stack->G);
	add_address_or_null(object, "coroutine", stack->L);
	json_keys_add_word(object, "state", format_state_name(stack->state));
	json_keys_add_number(object, "trace", stack->trace);
	json_keys_add_word(object, "outcome", daemon_outcome_name(stack->outcome));
	for (size_t i = 0; i < stack->count; i++)
		json_object_array_add(list, make_frame(&stack->frames[i]));
	json_object_object_add(object, "frames", list);
}
