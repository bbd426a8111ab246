/* SPDX-License-Identifier: MIT */
/* How does a sysprof or memprof stream become a profile? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "format/profile/profile_internal.h"
#include "format/read/profile_reader.h"
#include "format/stream/merge.h"
#include "format/stream/record_cache.h"
#include "format/stream/stream_read.h"
#include "format/sysprof/stream_format.h"
#include "format/sysprof/symbol_encoding.h"
#include "format/text/builtin_names.h"

/** Size of the cache of addresses between symbol records. The hash gives an address exactly one
 * slot. */
#define CACHE_BITS 15

/** The meaning of an address on a stack. */
struct known {
	uint64_t address, generation; /* generation of the symbols; 0: the entry is empty */
	uint32_t function, line;
	enum symbol_role role;
	bool is_proto;
	bool is_skipped; /* the trigger that our writer inserted; not shown */
};

struct loader {
	struct format_profile *profile;
	struct symtab symtab;
	struct merge merge;
	struct profile_frame *frames;
	size_t capacity;
	struct format_text name;
	struct known *cache;
	struct known *hosts; /* The host frames of one sample. */
	size_t host_capacity;
	struct record_cache record_cache;
};

/* ---- Functions -------------------------------------------------------------------------- */

static int64_t signed_line(uint64_t line)
{
	if (line == UINT64_MAX)
		return -1;
	return line > INT32_MAX ? INT32_MAX : (int64_t)line;
}

static uint32_t frame_line(int64_t line)
{
	return line < 0 ? 0 : (uint32_t)(line > INT32_MAX ? INT32_MAX : line);
}

static enum symbol_location location_of(const struct loader *loader, uint64_t address)
{
	return symbol_location_of(address, loader->symtab.numbered);
}

/** Add the Lua function with prototype @p proto at @p address. Its name is the C symbol there;
 * our writer's symbols also tell whether it is compiled. */
static int add_lua(struct loader *loader, const struct symtab_proto *proto, uint64_t address,
		   uint32_t *ret_id, struct failure *why)
{
	struct format_function function = {
		.kind = FORMAT_KIND_LUA,
		.address = address,
		.source = symtab_string(&loader->symtab, proto->chunk, NULL),
		.first_line = signed_line(proto->line),
	};
	struct label_mark mark = { 0 };
	const char *name;
	size_t len, name_len;

	function.name = name = symtab_find_native_at(&loader->symtab, address, &len);
	if (name && location_of(loader, address) == SYMBOL_LOCATION_COMPILED &&
	    symbol_parse_mark(name, len, &name_len, &mark)) {
		format_text_clear(&loader->name);
		format_text_add(&loader->name, name, name_len);
		if (format_text_take(&loader->name, &function.name, why))
			return -1;
		if (name_len == 0)
			function.name = NULL;
	}
	return profile_add_function(loader->profile, &function, &mark, ret_id, why);
}

/** Add a function named @p prefix + @p name, which is not terminated. It has no other fields. */
static int add_named(struct loader *loader, struct format_function function, const char *prefix,
		     const char *name, size_t len, uint32_t *ret_id, struct failure *why)
{
	format_text_clear(&loader->name);
	format_text_add_string(&loader->name, prefix);
	format_text_add_line(&loader->name, name, len);
	if (format_text_take(&loader->name, &function.name, why))
		return -1;
	if (function.kind == FORMAT_KIND_TRACE) {
		function.source = *function.name ? function.name : NULL;
		function.name = NULL;
	}
	return profile_add_function(loader->profile, &function, NULL, ret_id, why);
}

static int add_unknown(struct loader *loader, const char *what, uint64_t number, uint32_t *ret_id,
		       struct failure *why)
{
	struct format_function function = { .kind = FORMAT_KIND_NATIVE };
	char name[64];

	snprintf(name, sizeof(name), "%s 0x%" PRIx64, what, number);
	function.name = name;
	return profile_add_function(loader->profile, &function, NULL, ret_id, why);
}

/** Find the Lua function if our writer turned it into this host frame. */
static const struct symtab_proto *match_lua(const struct loader *loader, uint64_t start,
					    const char *name, size_t len, uint64_t *ret_address,
					    int64_t *ret_line)
{
	const struct symtab_proto *proto =
		symtab_find_proto_below(&loader->symtab, start, ret_address);
	size_t prefix = strlen(SYMBOL_API_PREFIX), chunk_len;
	const char *chunk;

	if (!proto || location_of(loader, start) == SYMBOL_LOCATION_NAME)
		return NULL;
	chunk = symtab_string(&loader->symtab, proto->chunk, &chunk_len);
	if (symbol_match_lua(name, len, chunk, chunk_len, ret_line))
		return proto;
	if (len > prefix && memcmp(name, SYMBOL_API_PREFIX, prefix) == 0 &&
	    symbol_match_lua(name + prefix, len - prefix, chunk, chunk_len, ret_line))
		return proto;
	return NULL;
}

/** Tell module and kind of a native function, if the stream does. */
static void take_module(const struct loader *loader, uint64_t start,
			struct format_function *function)
{
	const char *module = symtab_find_module_at(&loader->symtab, start);
	const size_t prefix = strlen(SYMBOL_MODULE_PREFIX);

	_Static_assert(sizeof(SYMBOL_MODULE_PREFIX) == sizeof(SYMBOL_LUAJIT_PREFIX),
		       "both are as long");
	if (function->kind != FORMAT_KIND_NATIVE || !module)
		return;
	if (strncmp(module, SYMBOL_LUAJIT_PREFIX, prefix) == 0)
		function->kind = FORMAT_KIND_VM;
	else if (strncmp(module, SYMBOL_MODULE_PREFIX, prefix) != 0)
		return;
	function->source = module[prefix] ? module + prefix : NULL;
}

/** Resolve a host address that has a C symbol. */
static int resolve_symbol(struct loader *loader, uint64_t start, const char *name, size_t len,
			  struct known *known, struct failure *why)
{
	struct symbol_meaning meaning =
		symbol_parse_symbol(start, location_of(loader, start), name, len);
	struct format_function function = { .kind = meaning.kind };
	const struct symtab_proto *proto;
	uint64_t address;
	int64_t line = 0;

	known->is_skipped = meaning.trigger;
	if (meaning.trigger)
		return 0;
	proto = match_lua(loader, start, name, len, &address, &line);
	known->line = proto ? frame_line(line) : 0;
	if (proto)
		return add_lua(loader, proto, address, &known->function, why);
	/* A number identifies only this symbol; it is not an address. */
	function.address = meaning.kind == FORMAT_KIND_TRACE ? meaning.trace
			   : loader->symtab.numbered	     ? 0
							     : start;
	function.first_line = meaning.line;
	take_module(loader, start, &function);
	return add_named(loader, function, meaning.file ? "@" : "", meaning.name, meaning.name_len,
			 &known->function, why);
}

/** Resolve a host address as Tarantool's parser does: prototype, then nearest C symbol, then
 * nothing. */
static int resolve_address(struct loader *loader, uint64_t address, struct known *known,
			   struct failure *why)
{
	const struct symtab_proto *proto = symtab_find_proto(&loader->symtab, address);
	uint64_t start;
	size_t len;
	const char *name;

	known->role = merge_role_of(&loader->symtab, address);
	known->is_proto = proto != NULL;
	if (proto)
		return add_lua(loader, proto, address, &known->function, why);
	name = symtab_find_native(&loader->symtab, address, &start, &len);
	if (name)
		return resolve_symbol(loader, start, name, len, known, why);
	return add_unknown(loader, "CFUNC", address, &known->function, why);
}

/** @param ret_known In the cache; valid until the next call. */
static int resolve(struct loader *loader, uint64_t address, const struct known **ret_known,
		   struct failure *why)
{
	uint64_t location = hash_spread(address) >> (64 - CACHE_BITS);
	/* + 1, because generations begin at 0. */
	uint64_t generation = loader->symtab.generation + 1;
	struct known *known = &loader->cache[location];

	if (known->address != address || known->generation != generation) {
		*known = (struct known){ .address = address };
		if (resolve_address(loader, address, known, why))
			return -1;
		known->generation = generation;
	}
	*ret_known = known;
	return 0;
}

/** Replace a native function that was found through a C frame of the Lua list. */
static int make_cfunc(struct loader *loader, uint32_t *id, struct failure *why)
{
	struct format_function function = *format_functions_get(loader->profile->functions, *id);

	if (!format_kind_is_native(function.kind))
		return 0;
	function.kind = FORMAT_KIND_CFUNC;
	function.source = NULL;
	return profile_add_function(loader->profile, &function, NULL, id, why);
}

static int resolve_lua(struct loader *loader, const struct format_lua_frame *lua,
		       struct profile_frame *ret_frame, struct failure *why)
{
	struct format_function function = { .kind = FORMAT_KIND_BUILTIN };
	const struct known *known;

	ret_frame->line = 0;
	if (lua->kind == STREAM_FRAME_BUILTIN) {
		function.name = format_ffname_of(lua->address);
		if (!function.name)
			return add_unknown(loader, "built-in function", lua->address,
					   &ret_frame->function, why);
		return profile_add_function(loader->profile, &function, NULL, &ret_frame->function,
					    why);
	}
	if (resolve(loader, lua->address, &known, why))
		return -1;
	if (known->is_skipped)
		return add_unknown(loader, "CFUNC", lua->address, &ret_frame->function, why);
	ret_frame->function = known->function;
	if (known->is_proto && lua->kind != STREAM_FRAME_CFUNC)
		ret_frame->line = profile_line(loader->profile, known->function,
					       frame_line(signed_line(lua->line)));
	if (lua->kind == STREAM_FRAME_CFUNC)
		return make_cfunc(loader, &ret_frame->function, why);
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------------- */

static int reserve(struct loader *loader, size_t count, struct failure *why)
{
	return ARRAY_RESERVE(loader->frames, loader->capacity, count)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a chain");
}

/** Resolve the host frames of a sample. */
static int resolve_hosts(struct loader *loader, const struct format_raw_sample *raw,
			 struct failure *why)
{
	const struct known *known;

	if (!ARRAY_RESERVE(loader->hosts, loader->host_capacity, raw->host_count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a chain");
	for (size_t i = 0; i < raw->host_count; i++) {
		if (resolve(loader, raw->host[i], &known, why))
			return -1;
		loader->hosts[i] = *known;
	}
	return 0;
}

static enum symbol_role role_of_host(void *context, size_t index)
{
	const struct loader *loader = context;

	return loader->hosts[index].role;
}

static int load_merged(struct loader *loader, const struct format_raw_sample *raw,
		       size_t *ret_count, struct failure *why)
{
	size_t count = 0;

	if (resolve_hosts(loader, raw, why) ||
	    merge_sample(&loader->merge, raw, role_of_host, loader, why) ||
	    reserve(loader, loader->merge.count, why))
		return -1;
	for (size_t i = 0; i < loader->merge.count; i++) {
		struct merge_frame frame = loader->merge.frames[i];
		const struct known *host;

		if (frame.is_lua) {
			if (resolve_lua(loader, &raw->lua[frame.index], &loader->frames[count++],
					why))
				return -1;
			continue;
		}
		host = &loader->hosts[frame.index];
		if (!host->is_skipped)
			loader->frames[count++] = (struct profile_frame){
				.function = host->function,
				.line = profile_line(loader->profile, host->function, host->line)
			};
	}
	*ret_count = count;
	return 0;
}

/** Without a host stack ("leaf mode"), the Lua stack is the chain. (Tarantool's merge gives an
 * empty chain then.) */
static int load_lua_only(struct loader *loader, const struct format_raw_sample *raw,
			 size_t *ret_count, struct failure *why)
{
	if (reserve(loader, raw->lua_count, why))
		return -1;
	for (size_t i = 0; i < raw->lua_count; i++)
		if (resolve_lua(loader, &raw->lua[raw->lua_count - 1 - i], &loader->frames[i], why))
			return -1;
	*ret_count = raw->lua_count;
	return 0;
}

/** A trace sample is a chain of one frame, the trace. */
static int load_trace(struct loader *loader, const struct format_raw_sample *raw, size_t *ret_count,
		      struct failure *why)
{
	const struct symtab_trace *trace = symtab_find_trace(&loader->symtab, raw->trace);
	const struct symtab_proto *proto =
		symtab_find_proto(&loader->symtab, trace ? trace->proto : raw->trace_proto);
	struct format_function function = { .kind = FORMAT_KIND_TRACE, .address = raw->trace };
	const char *chunk = "";
	size_t len = 0;

	if (proto) {
		chunk = symtab_string(&loader->symtab, proto->chunk, &len);
		function.first_line = signed_line(trace ? trace->line : raw->trace_line);
	}
	if (reserve(loader, 1, why) ||
	    add_named(loader, function, "", chunk, len, &loader->frames[0].function, why))
		return -1;
	loader->frames[0].line = 0;
	*ret_count = 1;
	return 0;
}

/** Whether a trace runs: the innermost Lua frame is a trace, or a function compiled into one.
 * Native code and built-ins that the trace calls may be further inside. */
static bool is_in_trace(const struct loader *loader, size_t count)
{
	for (size_t i = count; i > 0; i--) {
		uint32_t id = loader->frames[i - 1].function;
		enum format_kind kind = format_functions_get(loader->profile->functions, id)->kind;

		if (kind == FORMAT_KIND_TRACE || loader->profile->marks[id].compiled)
			return true;
		if (!format_kind_is_native(kind) && kind != FORMAT_KIND_BUILTIN)
			return false;
	}
	return false;
}

/** Find the state of VM work such as "[gc sweep]" by its first words. */
static bool find_vm_work(const char *name, enum format_state *ret_state)
{
	static const struct {
		const char *words;
		enum format_state state;
	} activities[] = {
		{ "[gc", FORMAT_STATE_GC },
		{ "[jit exit", FORMAT_STATE_EXIT },
		{ "[jit record", FORMAT_STATE_RECORD },
		{ "[jit opt", FORMAT_STATE_OPT },
		{ "[jit asm", FORMAT_STATE_ASM },
	};

	for (size_t i = 0; i < sizeof(activities) / sizeof(activities[0]); i++) {
		size_t len = strlen(activities[i].words);

		if (strncmp(name, activities[i].words, len) == 0 &&
		    (name[len] == ']' || name[len] == ' ')) {
			*ret_state = activities[i].state;
			return true;
		}
	}
	return false;
}

/** The VM's true state. Our writer must give a sample with Lua frames a state that allows them.
 * It shows other work of the VM as a frame right above the innermost Lua frame, below native
 * frames of the collector or the compiler. Other writers have no such frames. */
static enum format_state state_of(const struct loader *loader, const struct format_raw_sample *raw,
				  size_t count)
{
	enum format_state state = raw->state;

	for (size_t i = count; i-- > 0;) {
		const struct format_function *function = format_functions_get(
			loader->profile->functions, loader->frames[i].function);

		if (function->kind == FORMAT_KIND_PSEUDO && find_vm_work(function->name, &state))
			return state;
		if (function->kind != FORMAT_KIND_PSEUDO && !format_kind_is_native(function->kind))
			break;
	}
	return is_in_trace(loader, count) ? FORMAT_STATE_TRACE : state;
}

static int on_repeat(void *context, const uint8_t *bytes, size_t len, bool *ret_done,
		     struct failure *why)
{
	struct loader *loader = context;
	const struct cached_record *cached_record =
		record_cache_find(&loader->record_cache, bytes, len, loader->symtab.generation);

	*ret_done = cached_record != NULL;
	if (!cached_record)
		return 0;
	loader->profile->states[cached_record->state]++;
	return profile_count_sample(loader->profile, cached_record->chain, cached_record->key, 1,
				    why);
}

static int on_sample(void *context, const struct format_raw_sample *raw, struct failure *why)
{
	struct loader *loader = context;
	struct profile_labels labels = { 0 };
	struct cached_record cached_record = { 0 };
	enum format_state state;
	size_t count;
	int result;

	if (raw->state == FORMAT_STATE_TRACE)
		result = load_trace(loader, raw, &count, why);
	else if (raw->host_count == 0)
		result = load_lua_only(loader, raw, &count, why);
	else
		result = load_merged(loader, raw, &count, why);
	if (result)
		return -1;
	state = state_of(loader, raw, count);
	labels.state = (uint8_t)(state + 1);
	loader->profile->states[state]++;
	if (profile_find_sample(loader->profile, loader->frames, count, &labels,
				&cached_record.chain, &cached_record.key, why))
		return -1;
	cached_record.state = (uint8_t)state;
	if (raw->is_offered)
		record_cache_put(&loader->record_cache, loader->symtab.generation, &cached_record);
	return profile_count_sample(loader->profile, cached_record.chain, cached_record.key, 1,
				    why);
}

static int on_symbol(void *context, const struct format_symbol *symbol, struct failure *why)
{
	struct loader *loader = context;

	if (symtab_add(&loader->symtab, symbol, why))
		return -1;
	return tarantool_aliases_add(&loader->profile->heap.aliases, &loader->symtab, symbol, why);
}

static int on_event(void *context, const struct format_raw_event *event, struct failure *why)
{
	struct loader *loader = context;

	return heap_add_event(&loader->profile->heap, &loader->symtab, event, why);
}

/* ---- Whole profiles --------------------------------------------------------------------- */

static void loader_deinit(struct loader *loader)
{
	symtab_deinit(&loader->symtab);
	merge_deinit(&loader->merge);
	free(loader->frames);
	format_text_deinit(&loader->name);
	free(loader->cache);
	free(loader->hosts);
	record_cache_deinit(&loader->record_cache);
}

int profile_read_stream(struct format_profile *profile, struct unpack *unpack, struct failure *why)
{
	static const struct format_visitor visitor = {
		.symbol = on_symbol,
		.sample = on_sample,
		.event = on_event,
		.repeat = on_repeat,
	};
	struct loader loader = { .profile = profile };
	int result = -1;

	loader.cache = calloc((size_t)1 << CACHE_BITS, sizeof(*loader.cache));
	if (!loader.cache)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the functions");
	else if (symtab_init(&loader.symtab, why) == 0 && heap_begin(&profile->heap, why) == 0)
		result = stream_read(unpack, &visitor, &loader, &profile->kind, why);
	loader_deinit(&loader);
	heap_end(&profile->heap);
	return result;
}
