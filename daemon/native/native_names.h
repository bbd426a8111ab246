/* SPDX-License-Identifier: MIT */
/* Private to daemon: which native functions of LuaJIT does each file hold? */
#ifndef DAEMON_NATIVE_NATIVE_NAMES_H
#define DAEMON_NATIVE_NATIVE_NAMES_H

#include "luastate/native_names.h"
#include "symbols/space.h"

/**
 * Find LuaJIT's native functions in the file of an interpreter. All targets share what is known of
 * a file, so only the first call for it needs time: some ten ms. No stop may be pending. Files that
 * cannot be read, and those after the first 64, have no names.
 * @param start, end The interpreter's code in a target.
 */
void daemon_native_learn(struct symbols_space *space, uint64_t start, uint64_t end);

/**
 * Find the native function of LuaJIT at an address of a target.
 * @param ret_function Its addresses are the target's. Its name is valid as long as this process.
 * @return false if there is none, as in the interpreter.
 */
bool daemon_native_find(struct symbols_space *space, uint64_t address,
			struct luastate_native_function *ret_function);

/** Whether the native code at an address of a target is LuaJIT's own. */
bool daemon_native_is_vm(struct symbols_space *space, uint64_t address);

/** How many functions of LuaJIT a file has, by how they are named. */
struct daemon_native_counts {
	size_t all, by_symbol;
	size_t by_how[LUASTATE_NATIVE_HOWS]; /**< Those without a symbol. */
};

/** Count the functions of LuaJIT in the file at an address of a target. @return false if none is
 * known. */
bool daemon_native_count(struct symbols_space *space, uint64_t address,
			 struct daemon_native_counts *ret_counts);

#endif
