/* SPDX-License-Identifier: MIT */
/* What do our streams say in the names of symbols? */
#ifndef FORMAT_SYSPROF_SYMBOL_ENCODING_H
#define FORMAT_SYSPROF_SYMBOL_ENCODING_H

#include "format/data/label.h"
#include "format/text.h"

/*
 * How our sysprof writer says in symbol names what the stream format has no field for. The reader
 * undoes all of it; the reference parser shows the names as they are.
 *
 *  what                           numbers of               name of the symbol
 *  native function                functions                symbol
 *  the same, must not trigger     names                    "api:" symbol
 *  C function of an application   functions                name " [C]"
 *  name of a Lua function         functions: its prototype name
 *  the same, in a trace's code    compiled: one of its own name "[trace N]" or "[trace ~N]"
 *  Lua function, native position  behind its prototype     chunk name ":" line
 *  fast function, native position names                    name
 *  trace                          names                    "trace N @ file:line"
 *  activity                       names                    as it is, "[gc]"
 *  process                        names                    as it is, "nginx [4711]"
 *  inserted trigger               1                        "lua_call [LuaJIT]"
 *  that addresses are numbers     0, the first symbol      "ljprof"
 *
 * Addresses say nothing without the map of the process, which the stream does not have. So a
 * function gets a number instead of its address, which is written for all of its code: the first
 * thousands take two bytes where addresses take six or seven, the next million three, and none is
 * ever used for another one. What a number stands for shows in its value (enum symbol_location).
 *
 * Version 0.1.0 wrote addresses: those of native functions, prototypes and bytecode, and numbers
 * below 65536, where no process maps anything (vm.mmap_min_addr), for names. It is read, too, as
 * are its traces, "[trace N chunk name:line]" and "[trace N]".
 *
 * A trace in a chunk that is no file is "trace N chunk name:line", and one without a known start
 * "trace N".
 *
 * A Lua function that runs in compiled code has, for each trace, a prototype of its own with the
 * same chunk and line. "~" says that the frame is approximate, and 0 is a trace that is not told.
 *
 * All numbers are below 2^53, which is as far as the reference parser's are exact. Control
 * characters of chunk names become blanks. "Trigger" is explained in format/stream/merge.h.
 */
#define SYMBOL_TRIGGER	       "lua_call [LuaJIT]"
#define SYMBOL_TRIGGER_ADDRESS 1
#define SYMBOL_WRITER	       "ljprof"
#define SYMBOL_WRITER_ADDRESS  0
#define SYMBOL_API_PREFIX      "api:"
#define SYMBOL_CFUNC_SUFFIX    " [C]"

/** What a symbol's number stands for. */
enum symbol_location {
	SYMBOL_PLACE_FUNCTION, /**< A native function, a prototype, or a line of its function. */
	SYMBOL_PLACE_NAME,     /**< What has no place in a program. */
	SYMBOL_PLACE_COMPILED  /**< The prototype of a compiled frame, or a line of its function. */
};

/** The numbers from @c first on, below @c end. */
struct symbol_range {
	uint64_t first, end;
};

/** Ranges of each place, in the order in which they are filled. */
#define SYMBOL_PLACES 3
#define SYMBOL_RANGES 3
extern const struct symbol_range symbol_ranges[SYMBOL_PLACES][SYMBOL_RANGES];

/** What is in no range, as 0 and 1, is a name.
 *  @param numbered Whether addresses are numbers; else version 0.1.0 or another program wrote. */
enum symbol_location symbol_location_of(uint64_t address, bool numbered);

/** What a host frame's name makes the reference's merge do. */
enum symbol_role {
	SYMBOL_ROLE_NONE,
	SYMBOL_ROLE_CALL,  /**< lua_call…, lua_pcall…: Lua frames follow. */
	SYMBOL_ROLE_CPCALL /**< lua_cpcall…: the Lua stack loses its leaf. */
};

enum symbol_role symbol_role_of(const char *name);

/** Append the symbol name of @p function as in the table above; @p line is for Lua functions. */
void symbol_add_symbol(struct format_text *text, const struct format_function *function,
		       int64_t line);

/** What a C symbol says; strings lie in the symbol's own name. */
struct symbol_meaning {
	bool trigger;	       /**< Our inserted frame, to be left out. */
	enum format_kind kind; /**< Any but LUA, which symbol_match_lua() finds. */
	uint64_t trace;
	const char *name; /**< Not terminated. For a trace its chunk name. */
	size_t name_len;
	bool file;    /**< Trace only: the chunk name's "@" stands apart and is not in `name`. */
	int64_t line; /**< Trace only. */
};

/** Undo symbol_add_symbol() for all kinds but Lua functions.
 *  @param place Of @p address: symbol_location_of(). */
struct symbol_meaning symbol_parse_symbol(uint64_t address, enum symbol_location location,
					  const char *name, size_t len);

/** Append what the name of a compiled Lua function ends in. */
void symbol_add_mark(struct format_text *text, const struct label_mark *mark);

/** Undo that. @param ret_len Of the name before the mark. @return Whether there is a mark. */
bool symbol_parse_mark(const char *name, size_t len, size_t *ret_len, struct label_mark *ret_mark);

/** Whether @p name is @p chunk, control characters as blanks, with ":" and a line behind. */
bool symbol_match_lua(const char *name, size_t len, const char *chunk, size_t chunk_len,
		      int64_t *ret_line);

#endif
