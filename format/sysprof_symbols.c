/* SPDX-License-Identifier: MIT */
#include "format/sysprof_symbols.h"

#include <string.h>

#include "format/names.h"

/** Neighbouring addresses to try where a symbol's own one is taken by another text. A bytecode
 *  instruction is four bytes wide, so these belong to nobody else. */
#define PROBE_COUNT 4

/** Addresses behind a prototype's start to try for its lines. Its header is longer than this
 *  (LuaJIT v2.1 src/lj_obj.h, struct GCproto: 64 bytes and more), so no other object lies here. */
#define PROTO_PROBE_COUNT 48

/** Stand-ins for prototypes whose address is not known: above user space, below 2^53, which is as
 *  far as the reference parser's numbers are exact. */
#define UNKNOWN_PROTO_BASE ((uint64_t)1 << 52)

/** From one stand-in to the next, so that lines have room. */
#define PROTO_STRIDE	64
#define COMPILED_STRIDE 65536
#define COMPILED_LINES	(COMPILED_STRIDE - 1 - PROBE_COUNT)

/** Stand-ins for prototypes in which traces start, by the trace's number, above the last of the
 *  others: there are less than 2^24 functions. */
#define UNKNOWN_START_BASE (UNKNOWN_PROTO_BASE + ((uint64_t)1 << 31))

/** Prototypes for compiled frames. Beyond so many pairs of function and trace, which programs do
 * not have, frames tell that they are compiled but not the trace. */
#define COMPILED_MAX ((uint64_t)1 << 16)

int sysprof_symbols_init(struct sysprof_symbols *symbols, struct format_sink *sink,
			 const struct format_functions *functions, struct failure *why)
{
	memset(symbols, 0, sizeof(*symbols));
	symbols->sink = sink;
	symbols->functions = functions;
	symbols->next_low = NAMES_LOW_FIRST;
	symbols->next_compiled = NAMES_COMPILED_FIRST;
	symbols->texts = format_intern_create();
	if (!symbols->texts)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start a sysprof stream");
	return 0;
}

void sysprof_symbols_deinit(struct sysprof_symbols *symbols)
{
	format_intern_destroy(symbols->texts);
	format_addrmap_deinit(&symbols->symbols);
	format_addrmap_deinit(&symbols->protos);
	format_addrmap_deinit(&symbols->lows);
	format_addrmap_deinit(&symbols->traces);
	format_addrmap_deinit(&symbols->compiled);
	format_addrmap_deinit(&symbols->bytecode);
	format_text_deinit(&symbols->scratch);
}

/* ---- Records ---------------------------------------------------------------------------- */

/** Have @p text in force at @p address. */
static int put_text_at(struct sysprof_symbols *symbols, uint64_t address, uint32_t text,
		       struct failure *why)
{
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_C, .address = address };
	uint64_t present;

	if (format_addrmap_get(&symbols->symbols, address, &present) && present == text)
		return 0;
	symbol.name = format_intern_get(symbols->texts, text, &symbol.name_len);
	if (format_put_symbol(symbols->sink, &symbol, why))
		return -1;
	symbols->generation++;
	return format_addrmap_set(&symbols->symbols, address, text, why);
}

static bool is_proto(const struct sysprof_symbols *symbols, uint64_t address)
{
	uint64_t id;

	return format_addrmap_get(&symbols->protos, address, &id);
}

/** Whether @p text could stand at @p address without replacing another one. */
static bool is_free_for(const struct sysprof_symbols *symbols, uint64_t address, uint32_t text)
{
	uint64_t present;

	if (is_proto(symbols, address))
		return false;
	return !format_addrmap_get(&symbols->symbols, address, &present) || present == text;
}

/** Have @p text at @p address or right behind it. */
static int place(struct sysprof_symbols *symbols, uint64_t address, uint32_t text,
		 uint64_t *ret_address, struct failure *why)
{
	uint64_t at = address;

	for (unsigned i = 0; i < PROBE_COUNT; i++) {
		if (is_free_for(symbols, address + i, text)) {
			at = address + i;
			break;
		}
	}
	if (put_text_at(symbols, at, text, why))
		return -1;
	*ret_address = at;
	return 0;
}

/** Find or take a low address for @p text. They are used again, oldest first, when all are taken:
 *  a new record replaces an old one for all samples behind it. */
static int take_low(struct sysprof_symbols *symbols, uint32_t text, uint64_t *ret_address,
		    struct failure *why)
{
	uint64_t address, present;

	if (format_addrmap_get(&symbols->lows, text, &address) &&
	    format_addrmap_get(&symbols->symbols, address, &present) && present == text) {
		*ret_address = address;
		return 0;
	}
	for (unsigned i = NAMES_LOW_FIRST; i < NAMES_LOW_END; i++) {
		address = symbols->next_low++;
		if (symbols->next_low == NAMES_LOW_END)
			symbols->next_low = NAMES_LOW_FIRST;
		if (!is_proto(symbols, address))
			break;
	}
	if (format_addrmap_set(&symbols->lows, text, address, why))
		return -1;
	*ret_address = address;
	return 0;
}

static int place_low(struct sysprof_symbols *symbols, uint32_t text, uint64_t *ret_address,
		     struct failure *why)
{
	uint64_t address;

	if (take_low(symbols, text, &address, why) || put_text_at(symbols, address, text, why))
		return -1;
	*ret_address = address;
	return 0;
}

static int intern_scratch(struct sysprof_symbols *symbols, uint32_t *ret_text, struct failure *why)
{
	const char *string;

	if (format_text_take(&symbols->scratch, &string, why))
		return -1;
	return format_intern_put(symbols->texts, string, symbols->scratch.len, ret_text, why);
}

/* ---- Prototypes ------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t proto_address(uint32_t id, const struct format_function *function)
{
	return function->address ? function->address
				 : UNKNOWN_PROTO_BASE + (uint64_t)id * PROTO_STRIDE;
}

/** The prototype's own C symbol, which no reference report shows, holds the function's name. An
 *  older one that is left there has to be made empty. */
static int put_proto_name(struct sysprof_symbols *symbols, uint64_t address, const char *name,
			  struct failure *why)
{
	uint64_t present;
	uint32_t text;

	if (!name && !format_addrmap_get(&symbols->symbols, address, &present))
		return 0;
	format_text_clear(&symbols->scratch);
	if (name)
		format_text_add_line(&symbols->scratch, name, strlen(name));
	if (intern_scratch(symbols, &text, why))
		return -1;
	return put_text_at(symbols, address, text, why);
}

/** First line of a Lua function, or of the one in which a trace starts; where that is not known,
 * the line where the trace starts. */
static int64_t definition_of(const struct format_function *function)
{
	return function->kind == FORMAT_KIND_TRACE && function->proto ? function->proto_line
								      : function->first_line;
}

static const char *lua_name_of(const struct format_function *function)
{
	return function->kind == FORMAT_KIND_LUA ? function->name : NULL;
}

/** Whether what function @p old has put for its prototype holds for @p function too; a trace says
 *  nothing of the name. */
static bool tells_same(const struct format_function *old, const struct format_function *function)
{
	return same_text(old->source, function->source) &&
	       definition_of(old) == definition_of(function) &&
	       (function->kind == FORMAT_KIND_TRACE ||
		same_text(lua_name_of(old), lua_name_of(function)));
}

/** Have the chunk, first line and name of function @p id in force at @p address. */
static int put_proto_at(struct sysprof_symbols *symbols, uint64_t address, uint32_t id,
			struct failure *why)
{
	const struct format_function *function = format_functions_get(symbols->functions, id);
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_LUA, .address = address };
	uint64_t present;

	if (format_addrmap_get(&symbols->protos, address, &present) &&
	    (present == id ||
	     tells_same(format_functions_get(symbols->functions, (uint32_t)present), function)))
		return 0;
	symbol.name = function->source ? function->source : "?";
	symbol.name_len = strlen(symbol.name);
	symbol.line = (uint64_t)definition_of(function);
	if (format_put_symbol(symbols->sink, &symbol, why) ||
	    put_proto_name(symbols, address, lua_name_of(function), why))
		return -1;
	symbols->generation++;
	return format_addrmap_set(&symbols->protos, address, id, why);
}

/** The prototype of a function that runs as @p mark says. @return Whether it is a new one. */
static int find_compiled(struct sysprof_symbols *symbols, uint32_t id, struct names_mark *mark,
			 uint64_t *ret_address, bool *ret_new, struct failure *why)
{
	uint64_t key = (uint64_t)id << 33 | (uint64_t)mark->trace << 1 | mark->approximate;

	*ret_new = !format_addrmap_get(&symbols->compiled, key, ret_address);
	if (!*ret_new)
		return 0;
	if (symbols->next_compiled >= NAMES_COMPILED_FIRST + COMPILED_MAX * COMPILED_STRIDE) {
		mark->trace = 0;
		key = (uint64_t)id << 33 | mark->approximate;
		*ret_new = !format_addrmap_get(&symbols->compiled, key, ret_address);
		if (!*ret_new)
			return 0;
	}
	*ret_address = symbols->next_compiled;
	symbols->next_compiled += COMPILED_STRIDE;
	return format_addrmap_set(&symbols->compiled, key, *ret_address, why);
}

/** Have the prototype of a compiled frame in the stream. It never changes. */
static int use_compiled(struct sysprof_symbols *symbols, const struct format_frame *frame,
			uint64_t *ret_address, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, frame->function);
	struct names_mark mark = { .trace = frame->trace, .approximate = frame->approximate };
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_LUA };
	struct format_text *scratch = &symbols->scratch;
	uint32_t text;
	bool is_new;

	if (find_compiled(symbols, frame->function, &mark, ret_address, &is_new, why))
		return -1;
	if (!is_new)
		return 0;
	symbol.address = *ret_address;
	symbol.name = function->source ? function->source : "?";
	symbol.name_len = strlen(symbol.name);
	symbol.line = (uint64_t)function->first_line;
	format_text_clear(scratch);
	if (function->name)
		format_text_add_line(scratch, function->name, strlen(function->name));
	names_add_mark(scratch, &mark);
	if (intern_scratch(symbols, &text, why) || format_put_symbol(symbols->sink, &symbol, why) ||
	    put_text_at(symbols, *ret_address, text, why))
		return -1;
	return format_addrmap_set(&symbols->protos, *ret_address, frame->function, why);
}

int sysprof_symbols_use_proto(struct sysprof_symbols *symbols, const struct format_frame *frame,
			      uint64_t *ret_address, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, frame->function);
	uint64_t address = proto_address(frame->function, function);

	if (frame->trace)
		return use_compiled(symbols, frame, ret_address, why);
	if (put_proto_at(symbols, address, frame->function, why))
		return -1;
	*ret_address = address;
	return 0;
}

int sysprof_symbols_use_trace(struct sysprof_symbols *symbols, uint32_t id, uint64_t *ret_proto,
			      int64_t *ret_line, struct failure *why)
{
	const struct format_function *function = format_functions_get(symbols->functions, id);
	struct format_symbol symbol = { .kind = FORMAT_SYMBOL_TRACE };
	uint64_t present;

	symbol.trace = (uint32_t)function->address;
	symbol.address = function->proto ? function->proto
					 : UNKNOWN_START_BASE + symbol.trace * PROTO_STRIDE;
	symbol.line = (uint64_t)function->first_line;
	if (put_proto_at(symbols, symbol.address, id, why))
		return -1;
	*ret_proto = symbol.address;
	*ret_line = definition_of(function);
	if (format_addrmap_get(&symbols->traces, symbol.trace, &present) && present == id)
		return 0;
	if (format_put_symbol(symbols->sink, &symbol, why))
		return -1;
	return format_addrmap_set(&symbols->traces, symbol.trace, id, why);
}

/* ---- Host frames ------------------------------------------------------------------------ */

/** Whether @p address may stand for a line of the function with prototype @p proto: readers find
 *  that prototype as the nearest one at or below. */
static bool suits_proto(const struct sysprof_symbols *symbols, uint64_t address, uint64_t proto,
			uint32_t text)
{
	uint64_t nearest, id;

	return address >= NAMES_LOW_END &&
	       format_addrmap_floor(&symbols->protos, address, &nearest, &id) && nearest == proto &&
	       is_free_for(symbols, address, text);
}

/** An address for a line: that of its bytecode, or one in the prototype's header where dead
 *  prototypes or other symbols are in the way. */
static uint64_t find_bytecode(const struct sysprof_symbols *symbols, uint64_t bytecode,
			      uint64_t proto, uint32_t text)
{
	for (uint64_t i = 0; i < PROBE_COUNT; i++)
		if (suits_proto(symbols, bytecode + i, proto, text))
			return bytecode + i;
	for (uint64_t i = 1; i < PROTO_PROBE_COUNT; i++)
		if (suits_proto(symbols, proto + i, proto, text))
			return proto + i;
	return bytecode >= NAMES_LOW_END ? bytecode : proto + 1;
}

static int use_lua(struct sysprof_symbols *symbols, const struct format_frame *frame, int64_t line,
		   uint32_t text, uint64_t *ret_address, struct failure *why)
{
	uint64_t key = (uint64_t)frame->function << 32 | (uint32_t)line;
	uint64_t proto, address;

	if (sysprof_symbols_use_proto(symbols, frame, &proto, why))
		return -1;
	if (frame->trace)
		return place(symbols, proto + 1 + (uint32_t)line % COMPILED_LINES, text,
			     ret_address, why);
	if (!format_addrmap_get(&symbols->bytecode, key, &address) ||
	    !suits_proto(symbols, address, proto, text)) {
		address = find_bytecode(symbols, frame->address, proto, text);
		if (format_addrmap_set(&symbols->bytecode, key, address, why))
			return -1;
	}
	if (put_text_at(symbols, address, text, why))
		return -1;
	*ret_address = address;
	return 0;
}

/** The pc itself if readers resolve it to the symbol at @p start, else @p start. */
static uint64_t resolvable_pc(const struct sysprof_symbols *symbols, uint64_t pc, uint64_t start)
{
	uint64_t nearest, text;

	if (pc == 0 || is_proto(symbols, pc) ||
	    !format_addrmap_floor(&symbols->symbols, pc, &nearest, &text) || nearest != start)
		return start;
	return pc;
}

static int use_native(struct sysprof_symbols *symbols, const struct format_frame *frame,
		      uint64_t start, uint32_t text, uint64_t *ret_address, struct failure *why)
{
	uint64_t address;

	if (place(symbols, start, text, &address, why))
		return -1;
	*ret_address = resolvable_pc(symbols, frame->address, address);
	return 0;
}

/** Whether the symbol keeps the function's own address. */
static bool has_place(const struct format_function *function, bool escaped)
{
	if (function->kind != FORMAT_KIND_NATIVE && function->kind != FORMAT_KIND_CFUNC)
		return false;
	/* Probing must not wrap: 0 ends a stack. */
	return function->address >= NAMES_LOW_END &&
	       function->address <= UINT64_MAX - PROBE_COUNT && !escaped;
}

static int use_host(struct sysprof_symbols *symbols, const struct format_frame *frame, int64_t line,
		    bool may_trigger, uint64_t *ret_address, struct failure *why)
{
	const struct format_function *function =
		format_functions_get(symbols->functions, frame->function);
	struct format_text *scratch = &symbols->scratch;
	bool native = function->kind == FORMAT_KIND_NATIVE;
	bool escaped = native && function->address < NAMES_LOW_END;
	const char *name;
	uint32_t text;

	format_text_clear(scratch);
	names_add_symbol(scratch, function, line);
	if (format_text_take(scratch, &name, why))
		return -1;
	if (!may_trigger && names_role_of(name) != NAMES_ROLE_NONE)
		escaped = true;
	if (escaped) {
		format_text_clear(scratch);
		format_text_add_string(scratch, NAMES_API_PREFIX);
		names_add_symbol(scratch, function, line);
	}
	if (intern_scratch(symbols, &text, why))
		return -1;
	if (function->kind == FORMAT_KIND_LUA)
		return use_lua(symbols, frame, line, text, ret_address, why);
	if (has_place(function, escaped))
		return use_native(symbols, frame, function->address, text, ret_address, why);
	return place_low(symbols, text, ret_address, why);
}

static bool same_frame(const struct format_frame *a, const struct format_frame *b)
{
	return a->function == b->function && a->address == b->address && a->line == b->line &&
	       a->trace == b->trace && a->approximate == b->approximate;
}

/** Where a frame's address is kept. */
static struct sysprof_symbols_known *known_of(struct sysprof_symbols *symbols,
					      const struct format_frame *frame, int64_t line)
{
	uint64_t hash = (frame->address + frame->function) * 0x9e3779b97f4a7c15 ^
			((uint64_t)line + frame->trace) * 0xd6e8feb86659fd93;

	return &symbols->known[hash >> 32 & (SYSPROF_SYMBOLS_KNOWN - 1)];
}

int sysprof_symbols_use_host(struct sysprof_symbols *symbols, const struct format_frame *frame,
			     int64_t line, bool may_trigger, uint64_t *ret_address,
			     struct failure *why)
{
	struct sysprof_symbols_known *known = known_of(symbols, frame, line);

	if (known->until != symbols->generation + 1 || known->line != line ||
	    known->may_trigger != may_trigger || !same_frame(&known->frame, frame)) {
		known->until = 0;
		if (use_host(symbols, frame, line, may_trigger, &known->address, why) != 0)
			return -1;
		known->frame = *frame;
		known->line = line;
		known->may_trigger = may_trigger;
		known->until = symbols->generation + 1;
	}
	*ret_address = known->address;
	return 0;
}

int sysprof_symbols_use_trigger(struct sysprof_symbols *symbols, uint64_t *ret_address,
				struct failure *why)
{
	uint32_t text;

	if (format_intern_put(symbols->texts, NAMES_TRIGGER, strlen(NAMES_TRIGGER), &text, why) ||
	    put_text_at(symbols, NAMES_TRIGGER_ADDRESS, text, why))
		return -1;
	*ret_address = NAMES_TRIGGER_ADDRESS;
	return 0;
}
