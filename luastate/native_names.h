/* SPDX-License-Identifier: MIT */
/* Which names have LuaJIT's own native functions in a file without symbols, and which native code
 * is LuaJIT's at all? */
#ifndef LUASTATE_NATIVE_NAMES_H
#define LUASTATE_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/** Code [start, end). */
struct luastate_code_range {
	uint64_t start, end;
};

/** Bytes of a file at link-time addresses. Pointers in data are relocated to such addresses. */
struct luastate_module_part {
	uint64_t start;
	const uint8_t *bytes;
	size_t len;
	bool executable;
};

/** A file that contains LuaJIT's interpreter; all addresses are link-time addresses. The contents
 * are foreign and may be forged. */
struct luastate_module {
	struct luastate_code_range interpreter;
	/** The code of each unwind entry, ascending; they do not overlap. */
	const struct luastate_code_range *functions;
	size_t function_count;
	const struct luastate_module_part *parts;
	size_t part_count;
	/**
	 * Finds the symbol that begins at an address.
	 * @return Its name, borrowed until the next call; NULL: there is none.
	 */
	const char *(*symbol)(void *context, uint64_t address);
	void *context;
};

/** How a function's name was found. */
enum luastate_native_how {
	LUASTATE_NATIVE_UNNAMED,
	LUASTATE_NATIVE_BY_TABLE,     /**< LuaJIT's own tables of functions contain it. */
	LUASTATE_NATIVE_BY_CALLS,     /**< Known code calls it where only one function can be. */
	LUASTATE_NATIVE_BY_SIGNATURE, /**< Its instructions are those of a known build. */
	LUASTATE_NATIVE_HOWS,
};

/** One function of LuaJIT. */
struct luastate_native_function {
	uint64_t start, end;
	const char *name; /**< NULL: unnamed. Borrowed until destroy. */
	enum luastate_native_how how;
	uint64_t signature; /**< Hash of its instructions without operands; 0: none. */
	/** Whether its name is that of the function to which this seldom used part belongs. */
	bool is_cold;
};

/** The native functions of LuaJIT in one file. */
struct luastate_native;

/**
 * Find LuaJIT's native functions in a file, and their names. Stopped window: no, this decodes some
 * hundred KiB of code: about 10 ms. If two kinds of evidence give a function different names, it
 * has none.
 * @param module Borrowed during the call.
 * @param ret_native Set on success; release with luastate_native_destroy().
 * @param why FAILURE_NO_MEMORY, FAILURE_INVALID (the interpreter is not in the module's code).
 */
int luastate_native_create(const struct luastate_module *module,
			   struct luastate_native **ret_native, struct failure *why);
void luastate_native_destroy(struct luastate_native *native);

/** Whether the code at a link-time address is LuaJIT's: the interpreter, a function with or without
 * a name, or the seldom used part of one. */
bool luastate_native_is_vm(const struct luastate_native *native, uint64_t address);

/**
 * Find the function of LuaJIT that contains a link-time address.
 * @return false if there is none, and in the interpreter.
 */
bool luastate_native_find(const struct luastate_native *native, uint64_t address,
			  struct luastate_native_function *ret_function);

/** The functions in ascending order. */
size_t luastate_native_count(const struct luastate_native *native);
void luastate_native_get(const struct luastate_native *native, size_t index,
			 struct luastate_native_function *ret_function);

/** The table of functions that compiled code calls, for scripts/signatures. */
struct luastate_native_calls {
	uint64_t flags;		   /**< Hash of what the table says of the functions. */
	const uint64_t *functions; /**< 0: another file's, or in the interpreter. Borrowed. */
	size_t count;		   /**< 0: there is none. */
};

void luastate_native_get_calls(const struct luastate_native *native,
			       struct luastate_native_calls *ret_calls);

#endif
