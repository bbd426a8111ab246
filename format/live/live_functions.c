/* SPDX-License-Identifier: MIT */
/* Which functions does a live view have, with which names and ids? */
#include "attach/hash.h"
#include "format/live/live_internal.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Longer than people read. */
	NAME_SHOWN_MAX = 256,
	/* For a chunk that is not a file. */
	TEXT_SHOWN_MAX = 48,
};

/* ---- Texts ------------------------------------------------------------------------------ */

/* Add a chunk's name as in Lua's messages. Source: Lua 5.1 manual, lua_Debug.short_src. */
static void add_chunk(struct format_text *text, const char *chunk)
{
	size_t len;

	if (*chunk == '@' || *chunk == '=') {
		chunk++;
		format_text_add_shown(text, chunk,
				      format_text_cut(chunk, strlen(chunk), NAME_SHOWN_MAX));
		return;
	}
	len = strcspn(chunk, "\r\n");
	format_text_add_string(text, "[string \"");
	format_text_add_shown(text, chunk, format_text_cut(chunk, len, TEXT_SHOWN_MAX));
	format_text_add_string(text, len > TEXT_SHOWN_MAX || chunk[len] ? "...\"]" : "\"]");
}

static char *take_text(struct format_text *text)
{
	char *copy = text->broken ? NULL : strdup(text->bytes ? text->bytes : "");

	format_text_deinit(text);
	return copy;
}

static char *make_location(const struct format_function *function)
{
	struct format_text text = { 0 };

	if (function->source &&
	    (function->kind == FORMAT_KIND_LUA || function->kind == FORMAT_KIND_TRACE)) {
		add_chunk(&text, function->source);
		if (function->first_line > 0)
			format_text_addf(&text, ":%" PRId64, function->first_line);
	}
	return take_text(&text);
}

static char *make_shown(const struct format_function *function, const char *location)
{
	struct format_text text = { 0 };

	if (function->kind == FORMAT_KIND_TRACE)
		format_text_addf(&text, "trace %" PRIu64, function->address);
	else if (function->name)
		format_text_add_shown(
			&text, function->name,
			format_text_cut(function->name, strlen(function->name), NAME_SHOWN_MAX));
	else if (function->kind == FORMAT_KIND_LUA)
		format_text_addf(&text, "<%s>", location);
	else
		format_text_add_string(&text, "?");
	return take_text(&text);
}

static char *make_module(const struct format_function *function)
{
	static const char *const names[FORMAT_KIND_COUNT] = {
		[FORMAT_KIND_NATIVE] = "[unknown]",   [FORMAT_KIND_LUA] = "[unknown]",
		[FORMAT_KIND_BUILTIN] = "[built-in]", [FORMAT_KIND_CFUNC] = "[C]",
		[FORMAT_KIND_TRACE] = "[trace]",      [FORMAT_KIND_PSEUDO] = "[VM]",
		[FORMAT_KIND_PROCESS] = "[process]",  [FORMAT_KIND_VM] = "[LuaJIT]"
	};
	struct format_text text = { 0 };

	if (!function->source || !*function->source)
		format_text_add_string(&text, names[function->kind]);
	else if (function->kind == FORMAT_KIND_LUA || function->kind == FORMAT_KIND_TRACE)
		add_chunk(&text, function->source);
	else
		format_text_add_shown(&text, function->source,
				      format_text_cut(function->source, strlen(function->source),
						      NAME_SHOWN_MAX));
	return take_text(&text);
}

/* ---- Functions -------------------------------------------------------------------------- */

void live_free_function(struct live_function *info)
{
	free((void *)(uintptr_t)info->value.name);
	free((void *)(uintptr_t)info->value.source);
	free(info->shown);
	free(info->location);
	free(info->module_name);
	memset(info, 0, sizeof(*info));
}

static int find_module(struct format_live *live, const char *name, uint32_t *ret_module,
		       struct failure *why)
{
	uint64_t key = hash_words(name, strlen(name), 0);
	char *copy;

	if (live_table_put(&live->modules, &key, ret_module, why) != 0)
		return -1;
	if (*ret_module == LIVE_GONE)
		*ret_module = FORMAT_LIVE_OTHER;
	if (live->module_info[*ret_module].name)
		return 0;
	copy = strdup(name);
	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a module");
	live->module_info[*ret_module].name = copy;
	return 0;
}

static int make_function(struct format_live *live, const struct format_function *from,
			 struct live_function *ret_info, struct failure *why)
{
	struct live_function info = { .value = *from };

	/* Borrowed for the call only, and useless in a live view. */
	info.value.mapping = NULL;
	info.value.file = NULL;
	info.value.name = from->name ? strdup(from->name) : NULL;
	info.value.source = from->source ? strdup(from->source) : NULL;
	info.location = make_location(from);
	info.shown = make_shown(from, info.location ? info.location : "");
	info.module_name = make_module(from);
	info.class = view_class_of(from);
	if ((from->name && !info.value.name) || (from->source && !info.value.source) ||
	    !info.location || !info.shown || !info.module_name ||
	    find_module(live, info.module_name, &info.module, why) != 0) {
		live_free_function(&info);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a function");
	}
	*ret_info = info;
	return 0;
}

static struct live_function_key key_of(const struct format_function *function)
{
	const char *name = function->name ? function->name : "";
	const char *source = function->source ? function->source : "";
	const size_t name_len = strlen(name), source_len = strlen(source);
	const uint64_t numbers[] = {
		function->kind,
		(uint64_t)function->first_line,
		function->name != NULL,
		name_len,
		source_len,
		/* Traces are identified by number, and Lua functions by location in all
		 * processes that run the same file. Other functions without a name are
		 * identified by their code. */
		function->name || (function->kind == FORMAT_KIND_LUA && function->source)
			? 0
			: function->address,
	};
	struct live_function_key key = { .hash = 0, .second = ~(uint64_t)0 };

	for (int i = 0; i < 2; i++) {
		uint64_t hash = i ? key.second : key.hash;

		hash = hash_words(numbers, sizeof(numbers), hash);
		hash = hash_words(name, name_len, hash);
		hash = hash_words(source, source_len, hash);
		*(i ? &key.second : &key.hash) = hash;
	}
	return key;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Find a function with another name or none, with the same location and, at its announcement,
 * the same code address. LIVE_GONE: none. */
static uint32_t find_renamed(const struct format_live *live, const struct format_function *function)
{
	uint32_t known = live->recent[hash_word(function->address, 0) % LIVE_RECENT];
	const struct format_function *value;

	if (function->kind != FORMAT_KIND_LUA || known == FORMAT_LIVE_OTHER ||
	    known >= live->functions.count)
		return LIVE_GONE;
	value = &live->function_info[known].value;
	return value->kind == function->kind && value->address == function->address &&
			       value->first_line == function->first_line &&
			       is_same(value->source, function->source)
		       ? known
		       : LIVE_GONE;
}

/*
 * Give the new name to a function that had none, or a less certain one.
 * @return Whether there was one.
 */
static bool take_name(struct format_live *live, const struct format_function *function,
		      const struct live_function_key *key, uint32_t *ret_id, struct failure *why)
{
	uint32_t known = function->name ? find_renamed(live, function) : LIVE_GONE;
	struct live_function info;

	if (known == LIVE_GONE || live_table_find(&live->functions, key) != LIVE_GONE ||
	    make_function(live, function, &info, why) != 0)
		return false;
	live_free_function(&live->function_info[known]);
	live->function_info[known] = info;
	live_table_rename(&live->functions, known, key);
	*ret_id = known;
	return true;
}

int live_put_function(struct format_live *live, const struct format_function *function,
		      uint32_t *ret_id, struct failure *why)
{
	struct live_function_key key = key_of(function);
	bool full = live->functions.count == live->functions.max;

	if (take_name(live, function, &key, ret_id, why))
		return 0;
	if (full && !live->functions_full && live_table_find(&live->functions, &key) == LIVE_GONE &&
	    live_fold_functions(live, why) != 0)
		return -1;
	if (live_table_put(&live->functions, &key, ret_id, why) != 0)
		return -1;
	if (*ret_id == LIVE_GONE || live->function_info[*ret_id].shown)
		return 0;
	live->recent[hash_word(function->address, 0) % LIVE_RECENT] = *ret_id;
	return make_function(live, function, &live->function_info[*ret_id], why);
}

static struct live_id *slot_of_id(const struct format_live *live, uint32_t id)
{
	uint32_t mask = live->id_size - 1;
	uint32_t at = (uint32_t)hash_word(id, 0) & mask;

	while (live->ids[at].id && live->ids[at].id != (uint64_t)id + 1)
		at = (at + 1) & mask;
	return &live->ids[at];
}

static void forget_ids(struct format_live *live)
{
	memset(live->ids, 0, live->id_size * sizeof(*live->ids));
	live->id_count = 0;
	live->forgotten = true;
}

static void set_id(struct format_live *live, uint32_t id, uint32_t function)
{
	struct live_id *slot = slot_of_id(live, id);

	if (!slot->id && live->id_count >= live->id_size / 2) {
		forget_ids(live);
		slot = slot_of_id(live, id);
	}
	live->id_count += !slot->id;
	*slot = (struct live_id){ .id = (uint64_t)id + 1, .function = function };
}

int format_live_function(struct format_live *live, uint32_t id,
			 const struct format_function *function, struct failure *why)
{
	uint32_t known;

	if (live_put_function(live, function, &known, why) != 0)
		return -1;
	if (known == LIVE_GONE) {
		/* The table has no room until the next refresh; then the function is announced
		 * again. */
		live->folded.functions++;
		live->forgotten = true;
		known = FORMAT_LIVE_OTHER;
	}
	set_id(live, id, known);
	return live->program ? format_live_function(live->program->live, id, function, why) : 0;
}

uint32_t live_function_of(const struct format_live *live, uint32_t id)
{
	const struct live_id *slot = slot_of_id(live, id);

	return slot->id ? slot->function : FORMAT_LIVE_OTHER;
}

void live_move_ids(struct format_live *live, const uint32_t *map)
{
	/* Drop the ids of folded functions; they are announced again when they are next used. */
	struct live_id *old = live->ids;
	uint32_t count = live->id_size;

	live->ids = calloc(live->id_size, sizeof(*live->ids));
	live->forgotten = true;
	if (!live->ids) {
		live->ids = old;
		forget_ids(live);
		return;
	}
	live->id_count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (old[i].id && map[old[i].function] != FORMAT_LIVE_OTHER)
			set_id(live, (uint32_t)(old[i].id - 1), map[old[i].function]);
	free(old);
}
