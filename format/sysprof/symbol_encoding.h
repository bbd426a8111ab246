/* SPDX-License-Identifier: MIT */
/* What do our streams say in the names of symbols? */
#ifndef FORMAT_SYSPROF_SYMBOL_ENCODING_H
#define FORMAT_SYSPROF_SYMBOL_ENCODING_H

#include "format/data/label.h"
#include "format/text.h"

/*
 * Our sysprof writer stores data in symbol names if the stream format has no field for it. Our
 * reader decodes all of it; Tarantool's parser shows the names unchanged.
 *
 * what                           numbers of               name of the symbol
 * native function                functions                symbol
 * the same, must not trigger     names                    "api:" symbol
 * C function of an application   functions                name " [C]"
 * name of a Lua function         functions: its prototype name
 * the same, in a trace's code    compiled: one of its own name "[trace N]" or "[trace ~N]"
 * Lua function, native position  behind its prototype     chunk name ":" line
 * built-in, native position      names                    name
 * trace                          names                    "trace N @ file:line"
 * VM work                        names                    unchanged, "[gc]"
 * process                        names                    unchanged, "nginx [4711]"
 * inserted trigger               1                        "lua_call [LuaJIT]"
 * that addresses are numbers     0, the first symbol      "ljprof"
 * module of the native functions
 *   that follow                  2, once a module         "module libc.so.6"
 * the same, code of LuaJIT       2                        "LuaJIT luajit"
 *
 * Addresses mean nothing without the process's mappings, which the stream does not have. So a
 * function gets a number, which replaces its address for all of its code. The first thousands of
 * numbers take two bytes and the next million three, while addresses take six or seven. A number is
 * never used twice. Its value tells what it stands for (enum symbol_location).
 *
 * Version 0.1.0 wrote addresses of native functions, prototypes and bytecode; names had numbers
 * below 65536, where no process maps anything (vm.mmap_min_addr). The reader also reads that
 * version, with its traces "[trace N chunk name:line]" and "[trace N]".
 *
 * A trace in a chunk that is not a file is "trace N chunk name:line"; a trace without a known start
 * is "trace N".
 *
 * A Lua function in compiled code has, for each trace, a separate prototype with the same chunk and
 * line. "~" means that the frame is approximate; trace 0 is an unknown trace.
 *
 * All numbers are below 2^53, because the numbers of Tarantool's parser are exact up to there.
 * Blanks replace control characters in chunk names. format/stream/merge.h explains "trigger".
 */
#define SYMBOL_TRIGGER	       "lua_call [LuaJIT]"
#define SYMBOL_TRIGGER_ADDRESS 1
#define SYMBOL_WRITER	       "ljprof"
#define SYMBOL_WRITER_ADDRESS  0
#define SYMBOL_MODULE_ADDRESS  2
#define SYMBOL_MODULE_PREFIX   "module "
#define SYMBOL_LUAJIT_PREFIX   "LuaJIT "
#define SYMBOL_API_PREFIX      "api:"
#define SYMBOL_CFUNC_SUFFIX    " [C]"

/** What a symbol's number stands for. */
enum symbol_location {
	SYMBOL_LOCATION_FUNCTION, /**< A native function, a prototype, or a line of its function. */
	SYMBOL_LOCATION_NAME,	  /**< A symbol without a location in a program. */
	SYMBOL_LOCATION_COMPILED  /**< The prototype of a compiled frame, or a line of its function.
				   */
};

/** The numbers from `first` to `end`, without `end`. */
struct symbol_range {
	uint64_t first, end;
};

/** Ranges of each kind of number, in the order of use. */
#define SYMBOL_LOCATIONS 3
#define SYMBOL_RANGES	 3
extern const struct symbol_range symbol_ranges[SYMBOL_LOCATIONS][SYMBOL_RANGES];

/**
 * Numbers outside all ranges, such as 0 and 1, are names.
 * @param numbered Whether addresses are numbers. If not, version 0.1.0 or another program wrote the
 * stream.
 */
enum symbol_location symbol_location_of(uint64_t address, bool numbered);

/** The effect of a host frame's name in Tarantool's merge. */
enum symbol_role {
	SYMBOL_ROLE_NONE,
	SYMBOL_ROLE_CALL,  /**< lua_call…, lua_pcall…: Lua frames follow. */
	SYMBOL_ROLE_CPCALL /**< lua_cpcall…: the Lua stack drops its leaf. */
};

enum symbol_role symbol_role_of(const char *name);

/** Append the symbol name of @p function as in the table above. @p line is only for Lua
 * functions. */
void symbol_add_symbol(struct format_text *text, const struct format_function *function,
		       int64_t line);

/** The meaning of a C symbol; strings point into the symbol's name. */
struct symbol_meaning {
	bool trigger;	       /**< Our inserted frame, not shown. */
	enum format_kind kind; /**< Any kind but LUA, which symbol_match_lua() finds. */
	uint64_t trace;
	const char *name; /**< Not terminated. For a trace, its chunk name. */
	size_t name_len;
	bool file;    /**< Trace only: the chunk name begins with "@", which `name` omits. */
	int64_t line; /**< Trace only. */
};

/**
 * Undo symbol_add_symbol() for all kinds but Lua functions.
 * @param location symbol_location_of() of @p address.
 */
struct symbol_meaning symbol_parse_symbol(uint64_t address, enum symbol_location location,
					  const char *name, size_t len);

/** Append the mark for a compiled Lua function. */
void symbol_add_mark(struct format_text *text, const struct label_mark *mark);

/**
 * Undo symbol_add_mark().
 * @param ret_len Length of the name before the mark.
 * @return Whether there is a mark.
 */
bool symbol_parse_mark(const char *name, size_t len, size_t *ret_len, struct label_mark *ret_mark);

/** Whether @p name is @p chunk, with blanks for control characters, followed by ":" and a line. */
bool symbol_match_lua(const char *name, size_t len, const char *chunk, size_t chunk_len,
		      int64_t *ret_line);

#endif
