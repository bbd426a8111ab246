/* SPDX-License-Identifier: MIT */
/* How does Tarantool's own parser print locations? */
#include "format/stream/tarantool_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/stream/merge.h"
#include "format/sysprof/stream_format.h"
#include "format/text/builtin_names.h"

struct renderer {
	struct symtab symtab;
	struct tarantool_aliases aliases;
	struct merge merge;
	struct format_text chain;
	struct intern *chains;
	uint64_t *counts;
	uint32_t capacity;
};

/* ---- Locations -------------------------------------------------------------------------- */

int tarantool_aliases_init(struct tarantool_aliases *aliases, struct failure *why)
{
	aliases->chunks = intern_create();
	if (!aliases->chunks)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the symbols");
	return 0;
}

void tarantool_aliases_deinit(struct tarantool_aliases *aliases)
{
	intern_destroy(aliases->chunks);
	aliases->chunks = NULL;
}

int tarantool_aliases_add(struct tarantool_aliases *aliases, const struct symtab *symtab,
			  const struct format_symbol *symbol, struct failure *why)
{
	const struct symtab_proto *proto;
	const char *chunk;
	size_t len;
	uint32_t id;

	if (symbol->kind != FORMAT_SYMBOL_LUA || !memchr(symbol->name, '\n', symbol->name_len))
		return 0;
	proto = symtab_find_proto(symtab, symbol->address);
	chunk = proto ? symtab_string(symtab, proto->chunk, &len) : NULL;
	/* The newline may be in the part that was cut off. */
	if (!chunk || !memchr(chunk, '\n', len))
		return 0;
	return intern_put(aliases->chunks, chunk, len, &id, why);
}

static void resolve_code(const struct symtab *symtab, uint64_t address, uint64_t line,
			 struct tarantool_frame *frame)
{
	const struct symtab_proto *proto = symtab_find_proto(symtab, address);
	uint64_t entry;

	if (address == 0) {
		frame->kind = TARANTOOL_INTERNAL;
	} else if (proto) {
		frame->kind = TARANTOOL_LUA;
		frame->name = proto->chunk;
		frame->number = line;
	} else if (format_addrmap_floor(&symtab->natives, address, &frame->number, &entry)) {
		frame->kind = TARANTOOL_NATIVE;
		frame->name = (uint32_t)entry;
	} else {
		frame->kind = TARANTOOL_UNKNOWN;
		frame->number = address;
	}
}

void tarantool_resolve(const struct symtab *symtab, const struct tarantool_location *location,
		       struct tarantool_frame *ret_frame)
{
	const struct symtab_trace *trace;

	*ret_frame = (struct tarantool_frame){ .trace = location->trace };
	if (location->trace == 0) {
		resolve_code(symtab, location->address, location->line, ret_frame);
		return;
	}
	ret_frame->is_trace = 1;
	ret_frame->kind = TARANTOOL_NOWHERE;
	trace = symtab_find_trace(symtab, location->trace);
	if (trace)
		resolve_code(symtab, trace->proto, trace->line, ret_frame);
}

static void add_code(struct format_text *text, const struct tarantool_aliases *aliases,
		     const struct tarantool_frame *frame, const char *name, size_t len)
{
	uint64_t line = frame->number;
	uint32_t alias;

	switch ((enum tarantool_kind)frame->kind) {
	case TARANTOOL_INTERNAL:
		format_text_add_string(text, "INTERNAL");
		break;
	case TARANTOOL_LUA:
		if (intern_find(aliases->chunks, name, len, &alias))
			format_text_addf(text, "function_alias_%" PRIu32, alias + 1);
		else
			format_text_add(text, name, len);
		/* Tarantool's numbers are doubles; %d of 2^63 or more, such as line -1, gives
		 * this. */
		format_text_addf(text, ":%" PRId64, line > INT64_MAX ? INT64_MIN : (int64_t)line);
		break;
	case TARANTOOL_NATIVE:
		format_text_add(text, name, len);
		/* %#x of zero has no prefix. */
		if (!frame->is_general)
			format_text_addf(text, ":%#" PRIx64, frame->number);
		break;
	case TARANTOOL_UNKNOWN:
		format_text_addf(text, "CFUNC %#" PRIx64, frame->number);
		break;
	case TARANTOOL_NOWHERE:
		break;
	}
}

void tarantool_add_frame(struct format_text *text, const struct tarantool_aliases *aliases,
			 const struct tarantool_frame *frame, const char *name, size_t len)
{
	if (frame->is_trace) {
		format_text_add_string(text, "TRACE");
		if (!frame->is_general)
			format_text_addf(text, " [%" PRIu64 "]", frame->trace);
		if (frame->kind != TARANTOOL_NOWHERE)
			format_text_add_string(text, " started at ");
	}
	add_code(text, aliases, frame, name, len);
}

/* ---- Chains ----------------------------------------------------------------------------- */

static int on_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct renderer *renderer = context;

	if (symtab_add(&renderer->symtab, symbol, why))
		return -1;
	return tarantool_aliases_add(&renderer->aliases, &renderer->symtab, symbol, why);
}

static void add_location(struct renderer *renderer, const struct tarantool_location *location)
{
	struct tarantool_frame frame;
	const char *name = "";
	size_t len = 0;

	tarantool_resolve(&renderer->symtab, location, &frame);
	if (frame.kind == TARANTOOL_LUA || frame.kind == TARANTOOL_NATIVE)
		name = symtab_string(&renderer->symtab, frame.name, &len);
	tarantool_add_frame(&renderer->chain, &renderer->aliases, &frame, name, len);
}

static void add_frame(struct renderer *renderer, const struct format_raw_sample *raw,
		      struct merge_frame frame)
{
	struct tarantool_location location = { 0 };
	const struct format_lua_frame *lua = frame.is_lua ? &raw->lua[frame.index] : NULL;

	if (lua && lua->kind == STREAM_FRAME_BUILTIN) {
		const char *name = format_ffname_of(lua->address);

		/* Tarantool's parser drops a frame without a name. */
		if (name) {
			format_text_add_string(&renderer->chain, name);
			format_text_add(&renderer->chain, ";", 1);
		}
		return;
	}
	location.address = lua ? lua->address : raw->host[frame.index];
	location.line = lua ? lua->line : 0;
	add_location(renderer, &location);
	format_text_add(&renderer->chain, ";", 1);
}

static int count_chain(struct renderer *renderer, struct failure *why)
{
	const char *string;
	uint32_t id;

	if (format_text_take(&renderer->chain, &string, why) ||
	    intern_put(renderer->chains, string, renderer->chain.len, &id, why))
		return -1;
	if (!ARRAY_RESERVE_ZEROED(renderer->counts, renderer->capacity, (size_t)id + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the chains");
	renderer->counts[id]++;
	return 0;
}

/** The sample being merged. */
struct merging {
	const struct symtab *symtab;
	const struct format_raw_sample *raw;
};

static enum symbol_role role_of_host(void *context, size_t index)
{
	const struct merging *merging = context;

	return merge_role_of(merging->symtab, merging->raw->host[index]);
}

static int on_sample(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	struct renderer *renderer = context;
	struct merging merging = { &renderer->symtab, raw };

	if (merge_sample(&renderer->merge, raw, role_of_host, &merging, why))
		return -1;
	format_text_clear(&renderer->chain);
	for (size_t i = 0; i < renderer->merge.count; i++)
		add_frame(renderer, raw, renderer->merge.frames[i]);
	if (renderer->merge.count == 0)
		format_text_add(&renderer->chain, ";", 1);
	return count_chain(renderer, why);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_lines(char **lines, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(lines[i]);
	free(lines);
}

static int print_sorted(const struct renderer *renderer, struct format_text *text,
			struct failure *why)
{
	uint32_t count = intern_count(renderer->chains);
	char **lines = calloc((size_t)count + 1, sizeof(*lines));

	for (uint32_t i = 0; lines && i < count; i++) {
		const char *chain = intern_get(renderer->chains, i, NULL);

		if (asprintf(&lines[i], "%s\t%" PRIu64 "\n", chain, renderer->counts[i]) < 0) {
			free_lines(lines, i);
			lines = NULL;
		}
	}
	if (!lines)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sort the chains");
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (uint32_t i = 0; i < count; i++)
		format_text_add_string(text, lines[i]);
	free_lines(lines, count);
	return 0;
}

static void renderer_deinit(struct renderer *renderer)
{
	symtab_deinit(&renderer->symtab);
	tarantool_aliases_deinit(&renderer->aliases);
	merge_deinit(&renderer->merge);
	format_text_deinit(&renderer->chain);
	intern_destroy(renderer->chains);
	free(renderer->counts);
}

int tarantool_print_sysprof(FILE *stream, struct format_text *text, struct failure *why)
{
	static const struct format_visitor visitor = { .symbol = on_symbol, .sample = on_sample };
	struct renderer renderer = { 0 };
	enum format_stream_kind kind;
	const char *string;
	int result = -1;

	renderer.chains = intern_create();
	if (!renderer.chains)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the chains");
	else if (symtab_init(&renderer.symtab, why) == 0 &&
		 tarantool_aliases_init(&renderer.aliases, why) == 0 &&
		 format_read_stream(stream, &visitor, &renderer, &kind, why) == 0)
		result = print_sorted(&renderer, text, why);
	renderer_deinit(&renderer);
	return result ? -1 : format_text_take(text, &string, why);
}
