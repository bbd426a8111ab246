/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_NAMES_H
#define FORMAT_NAMES_H

#include "format/text.h"

/*
 * How our sysprof writer says in symbol names what the stream format has no field for. The reader
 * undoes all of it; the reference parser shows the names as they are.
 *
 *  what                           address of the symbol     name of the symbol
 *  native function                its start                 symbol
 *  the same, must not trigger     low                       "api:" symbol
 *  C function of an application   its start                 name " [C]"
 *  Lua function, native position  bytecode in its prototype chunk name ":" line
 *  name of a Lua function         its prototype             name
 *  fast function, native position low                       name
 *  trace                          low                       "[trace N chunk name:line]"
 *  activity                       low                       as it is, "[gc]"
 *  inserted trigger               1                         "lua_call [LuaJIT]"
 *
 * Low addresses are below 65536, where no process maps anything (vm.mmap_min_addr). Control
 * characters of chunk names become blanks. "Trigger" is explained in format/merge.h.
 */
#define NAMES_TRIGGER	      "lua_call [LuaJIT]"
#define NAMES_TRIGGER_ADDRESS 1
#define NAMES_LOW_FIRST	      2
#define NAMES_LOW_END	      65536
#define NAMES_API_PREFIX      "api:"
#define NAMES_CFUNC_SUFFIX    " [C]"
#define NAMES_TRACE_PREFIX    "[trace "

/** What a host frame's name makes the reference's merge do. */
enum names_role {
	NAMES_ROLE_NONE,
	NAMES_ROLE_CALL,  /**< lua_call…, lua_pcall…: Lua frames follow. */
	NAMES_ROLE_CPCALL /**< lua_cpcall…: the Lua stack loses its leaf. */
};

enum names_role names_role_of(const char *name);

/** Append the symbol name of @p function as in the table above; @p line is for Lua functions. */
void names_add_symbol(struct format_text *text, const struct format_function *function,
		      int64_t line);

/** What a C symbol says; strings lie in the symbol's own name. */
struct names_meaning {
	bool trigger;	       /**< Our inserted frame, to be left out. */
	enum format_kind kind; /**< Any but LUA, which names_match_lua() finds. */
	uint64_t trace;
	const char *name; /**< Not terminated. For a trace its chunk name. */
	size_t name_len;
	int64_t line; /**< Trace only. */
};

/** Undo names_add_symbol() for all kinds but Lua functions. */
struct names_meaning names_parse_symbol(uint64_t address, const char *name, size_t len);

/** Whether @p name is @p chunk, control characters as blanks, with ":" and a line behind. */
bool names_match_lua(const char *name, size_t len, const char *chunk, size_t chunk_len,
		     int64_t *ret_line);

#endif
