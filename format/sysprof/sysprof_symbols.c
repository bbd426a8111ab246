/* SPDX-License-Identifier: MIT */
/* How do frames get numbers, each with a symbol at first use? */
#include "attach/array.h"
#include "attach/hash.h"
#include "format/sysprof/sysprof_symbols.h"
#include "format/stream.h"

#include <stdlib.h>
#include <string.h>

/** How many numbers a function reserves for lines at a time: the first time, the growth factor,
 * and the bound. */
#define LINES_FIRST  15
#define LINES_GROWTH 4
#define LINES_MAX    4095

/** Bound of Lua functions by trace: about 100 bytes each here, plus their names in the stream.
 * Beyond it, frames are marked as compiled without their trace. Only a program that compiles
 * without end reaches it. */
#define LUAS_MAX ((size_t)1 << 18)

static int put_name(struct sysprof_symbols *symbols, uint64_t number, const char *name, size_t len,
		    struct failure *why)
{
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_C, .address = number };

	symbol.name = name;
	symbol.name_len = len;
	return format_put_symbol(symbols->sink, &symbol, why);
}

int sysprof_symbols_init(struct sysprof_symbols *symbols, struct format_sink *sink,
			 const struct format_functions *functions, struct failure *why)
{
	memset(symbols, 0, sizeof(*symbols));
	symbols->sink = sink;
	symbols->functions = functions;
	return put_name(symbols, SYMBOL_WRITER_ADDRESS, SYMBOL_WRITER, strlen(SYMBOL_WRITER), why);
}

void sysprof_symbols_deinit(struct sysprof_symbols *symbols)
{
	format_addrmap_deinit(&symbols->hosts);
	format_addrmap_deinit(&symbols->protos);
	format_addrmap_deinit(&symbols->lines);
	format_addrmap_deinit(&symbols->starts);
	format_addrmap_deinit(&symbols->addresses);
	format_addrmap_deinit(&symbols->traces);
	free(symbols->luas);
	format_text_deinit(&symbols->scratch);
	format_text_deinit(&symbols->module);
}

/** Reserve @p count consecutive numbers. */
static int take(struct sysprof_symbols *symbols, enum symbol_location location, uint64_t count,
		uint64_t *ret_first, struct failure *why)
{
	for (unsigned i = 0; i < SYMBOL_RANGES; i++) {
		const struct symbol_range *range = &symbol_ranges[location][i];
		uint64_t *next = &symbols->next[location][i];

		if (!*next)
			*next = range->first;
		if (count <= range->end - *next) {
			*ret_first = *next;
			*next += count;
			return 0;
		}
	}
	return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "number more names");
}

/** Put the text in `scratch` as the name of @p number. */
static int put_scratch(struct sysprof_symbols *symbols, uint64_t number, struct failure *why)
{
	const char *name;

	if (format_text_take(&symbols->scratch, &name, why))
		return -1;
	return put_name(symbols, number, name, symbols->scratch.len, why);
}

/** Whether the symbol's name is a trigger for Tarantool's merge. */
static bool triggers(const struct format_function *function)
{
	const char *begin = function->kind == FORMAT_KIND_LUA ? function->source : function->name;

	return function->kind != FORMAT_KIND_TRACE && begin &&
	       symbol_role_of(begin) != SYMBOL_ROLE_NONE;
}

static void add_symbol(struct format_text *text, const struct format_function *function,
		       int64_t line, bool escaped)
{
	format_text_clear(text);
	if (escaped)
		format_text_add_string(text, SYMBOL_API_PREFIX);
	symbol_add_symbol(text, function, line);
}

/* ---- Prototypes ------------------------------------------------------------------------- */

static int put_chunk(struct sysprof_symbols *symbols, uint64_t number,
		     const struct format_function *function, int64_t line, struct failure *why)
{
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_LUA, .address = number };

	symbol.name = function->source ? function->source : "?";
	symbol.name_len = strlen(symbol.name);
	symbol.line = (uint64_t)line;
	return format_put_symbol(symbols->sink, &symbol, why);
}

/** First line of a Lua function, or of the function in which a trace starts; if unknown, the line
 * where the trace starts. */
static int64_t definition_of(const struct format_function *function)
{
	return function->kind == FORMAT_KIND_TRACE && function->proto ? function->proto_line
								      : function->first_line;
}

/** Find the prototype of the function in which @p trace starts, if another function already put
 * it. */
static bool find_start(const struct sysprof_symbols *symbols, const struct format_function *trace,
		       uint64_t *ret_number)
{
	const struct format_function *other;
	uint64_t id;

	if (!trace->proto || !format_addrmap_get(&symbols->addresses, trace->proto, &id))
		return false;
	other = format_functions_get(symbols->functions, (uint32_t)id);
	if (definition_of(other) != definition_of(trace) ||
	    !(other->source && trace->source ? strcmp(other->source, trace->source) == 0
					     : other->source == trace->source))
		return false;
	return format_addrmap_get(&symbols->starts, id, ret_number);
}

/** Remember that function @p id, or the function in which it starts, is at @p address and has @p
 * number. */
static int keep_start(struct sysprof_symbols *symbols, uint32_t id, uint64_t address,
		      uint64_t number, struct failure *why)
{
	if (format_addrmap_set(&symbols->starts, id, number, why))
		return -1;
	return address ? format_addrmap_set(&symbols->addresses, address, id, why) : 0;
}

/** Put a prototype, with numbers for lines behind it. The prototype's own C symbol, which no
 * report of Tarantool's shows, has the function's name and how it runs. */
static int put_proto(struct sysprof_symbols *symbols, struct sysprof_symbols_lua *lua,
		     uint64_t lines, uint64_t *ret_number, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, lua->function);
	enum symbol_location location =
		lua->mark.compiled ? SYMBOL_LOCATION_COMPILED : SYMBOL_LOCATION_FUNCTION;
	struct format_text *scratch = &symbols->scratch;

	if (take(symbols, location, 1 + lines, ret_number, why) ||
	    put_chunk(symbols, *ret_number, function, function->first_line, why))
		return -1;
	if (function->name || lua->mark.compiled) {
		format_text_clear(scratch);
		if (function->name)
			format_text_add_line(scratch, function->name, strlen(function->name));
		if (lua->mark.compiled)
			symbol_add_mark(scratch, &lua->mark);
		if (put_scratch(symbols, *ret_number, why))
			return -1;
	}
	if (lua->proto)
		return 0;
	lua->proto = *ret_number;
	return lua->mark.compiled
		       ? 0
		       : keep_start(symbols, lua->function, function->address, lua->proto, why);
}

static uint64_t key_of(uint32_t function, const struct label_mark *mark)
{
	return (uint64_t)function << 34 | (uint64_t)mark->trace << 2 | mark->compiled << 1 |
	       mark->approximate;
}

static int add_lua(struct sysprof_symbols *symbols, uint32_t function,
		   const struct label_mark *mark, uint64_t *ret_index, struct failure *why)
{
	if (!ARRAY_RESERVE(symbols->luas, symbols->lua_capacity, symbols->lua_count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write a sample");
	*ret_index = symbols->lua_count++;
	symbols->luas[*ret_index] =
		(struct sysprof_symbols_lua){ .function = function, .mark = *mark };
	return format_addrmap_set(&symbols->protos, key_of(function, mark), *ret_index, why);
}

/** Find the frame's function together with how it runs. @param ret_index Index in `luas`. */
static int find_lua(struct sysprof_symbols *symbols, const struct format_frame *frame,
		    uint64_t *ret_index, struct failure *why)
{
	struct label_mark mark = { .compiled = frame->trace != 0,
				   .approximate = frame->trace && frame->approximate,
				   .trace = frame->trace };

	if (format_addrmap_get(&symbols->protos, key_of(frame->function, &mark), ret_index))
		return 0;
	if (mark.trace && symbols->lua_count >= LUAS_MAX) {
		mark.trace = 0;
		if (format_addrmap_get(&symbols->protos, key_of(frame->function, &mark), ret_index))
			return 0;
	}
	return add_lua(symbols, frame->function, &mark, ret_index, why);
}

int sysprof_symbols_use_proto(struct sysprof_symbols *symbols, const struct format_frame *frame,
			      uint64_t *ret_number, struct failure *why)
{
	struct sysprof_symbols_lua *lua;
	uint64_t index;

	if (find_lua(symbols, frame, &index, why))
		return -1;
	lua = &symbols->luas[index];
	if (!lua->proto)
		return put_proto(symbols, lua, 0, ret_number, why);
	*ret_number = lua->proto;
	return 0;
}

/** Reserve numbers for lines behind a prototype: readers find it as the nearest one below. */
static int take_lines(struct sysprof_symbols *symbols, struct sysprof_symbols_lua *lua,
		      struct failure *why)
{
	uint64_t count = LINES_FIRST, proto;

	while (count < lua->line_count && count < LINES_MAX)
		count = LINES_GROWTH * (count + 1) - 1;
	if (put_proto(symbols, lua, count, &proto, why))
		return -1;
	lua->next = proto + 1;
	lua->end = proto + 1 + count;
	return 0;
}

static int use_line(struct sysprof_symbols *symbols, const struct format_frame *frame, int64_t line,
		    uint64_t *ret_number, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, frame->function);
	struct sysprof_symbols_lua *lua;
	uint64_t index, key;

	if (find_lua(symbols, frame, &index, why))
		return -1;
	key = index << 32 | (uint32_t)line;
	if (format_addrmap_get(&symbols->lines, key, ret_number))
		return 0;
	lua = &symbols->luas[index];
	if (lua->next == lua->end && take_lines(symbols, lua, why))
		return -1;
	add_symbol(&symbols->scratch, function, line, triggers(function));
	if (put_scratch(symbols, lua->next, why))
		return -1;
	*ret_number = lua->next++;
	lua->line_count++;
	return format_addrmap_set(&symbols->lines, key, *ret_number, why);
}

int sysprof_symbols_use_trace(struct sysprof_symbols *symbols, uint32_t id, uint64_t *ret_proto,
			      int64_t *ret_line, struct failure *why)
{
	const struct format_function *function = format_functions_get(symbols->functions, id);
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_TRACE };
	uint64_t present;

	*ret_line = definition_of(function);
	if (!format_addrmap_get(&symbols->starts, id, ret_proto)) {
		if (!find_start(symbols, function, ret_proto) &&
		    (take(symbols, SYMBOL_LOCATION_FUNCTION, 1, ret_proto, why) ||
		     put_chunk(symbols, *ret_proto, function, *ret_line, why)))
			return -1;
		if (keep_start(symbols, id, function->proto, *ret_proto, why))
			return -1;
	}
	symbol.trace = (uint32_t)function->address;
	symbol.address = *ret_proto;
	symbol.line = (uint64_t)function->first_line;
	if (format_addrmap_get(&symbols->traces, symbol.trace, &present) && present == id)
		return 0;
	if (format_put_symbol(symbols->sink, &symbol, why))
		return -1;
	return format_addrmap_set(&symbols->traces, symbol.trace, id, why);
}

/* ---- Host frames ------------------------------------------------------------------------ */

static bool is_native(const struct format_function *function)
{
	return format_kind_is_native(function->kind) || function->kind == FORMAT_KIND_CFUNC;
}

/** Put the module of a native function, if it is another one than before. */
static int put_module(struct sysprof_symbols *symbols, const struct format_function *function,
		      struct failure *why)
{
	bool is_luajit = function->kind == FORMAT_KIND_VM;
	struct format_text *last = &symbols->module;
	const char *module = function->source ? function->source : "", *name;
	struct format_text text = { 0 };
	int result = 0;

	if (!format_kind_is_native(function->kind))
		return 0;
	format_text_add_string(&text, is_luajit ? SYMBOL_LUAJIT_PREFIX : SYMBOL_MODULE_PREFIX);
	format_text_add_line(&text, module, strlen(module));
	if (format_text_take(&text, &name, why)) {
		format_text_deinit(&text);
		return -1;
	}
	if (!last->bytes || strcmp(last->bytes, name) != 0) {
		result = put_name(symbols, SYMBOL_MODULE_ADDRESS, name, text.len, why);
		format_text_clear(last);
		format_text_add_string(last, name);
	}
	format_text_deinit(&text);
	return result;
}

/** Put the name of a function without lines. */
static int put_host(struct sysprof_symbols *symbols, const struct format_function *function,
		    bool escaped, uint64_t *ret_number, struct failure *why)
{
	enum symbol_location location =
		is_native(function) && !escaped ? SYMBOL_LOCATION_FUNCTION : SYMBOL_LOCATION_NAME;

	if (put_module(symbols, function, why))
		return -1;
	add_symbol(&symbols->scratch, function, 0, escaped);
	if (take(symbols, location, 1, ret_number, why))
		return -1;
	return put_scratch(symbols, *ret_number, why);
}

static int use_host(struct sysprof_symbols *symbols, const struct format_frame *frame, int64_t line,
		    bool may_trigger, uint64_t *ret_number, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, frame->function);
	bool escaped = !may_trigger && triggers(function);
	uint64_t key = (uint64_t)frame->function << 1 | escaped;

	if (function->kind == FORMAT_KIND_LUA)
		return use_line(symbols, frame, line, ret_number, why);
	if (format_addrmap_get(&symbols->hosts, key, ret_number))
		return 0;
	if (put_host(symbols, function, escaped, ret_number, why))
		return -1;
	return format_addrmap_set(&symbols->hosts, key, *ret_number, why);
}

int sysprof_symbols_use_host(struct sysprof_symbols *symbols, const struct format_frame *frame,
			     int64_t line, bool may_trigger, uint64_t *ret_number,
			     struct failure *why)
{
	uint64_t hash = hash_spread(hash_spread(frame->function) + (uint64_t)line + frame->trace);
	struct sysprof_symbols_known *known =
		&symbols->known[hash >> 32 & (SYSPROF_SYMBOLS_KNOWN - 1)];

	if (!known->number || known->function != frame->function || known->line != line ||
	    known->trace != frame->trace || known->approximate != frame->approximate ||
	    known->may_trigger != may_trigger) {
		known->number = 0;
		if (use_host(symbols, frame, line, may_trigger, ret_number, why))
			return -1;
		*known = (struct sysprof_symbols_known){
			frame->function,    frame->trace, line,
			frame->approximate, may_trigger,  *ret_number
		};
	}
	*ret_number = known->number;
	return 0;
}

int sysprof_symbols_use_trigger(struct sysprof_symbols *symbols, uint64_t *ret_number,
				struct failure *why)
{
	*ret_number = SYMBOL_TRIGGER_ADDRESS;
	if (symbols->has_trigger)
		return 0;
	if (put_name(symbols, SYMBOL_TRIGGER_ADDRESS, SYMBOL_TRIGGER, strlen(SYMBOL_TRIGGER), why))
		return -1;
	symbols->has_trigger = true;
	return 0;
}
