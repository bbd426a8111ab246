/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIVE_LUA_LIBRARY_H
#define TESTS_LIVE_LUA_LIBRARY_H

/* A LuaJIT library that a host loads by its path. */

#include <stddef.h>

/** Functions of the library; its headers are not needed for these. Source: lua.h and lauxlib.h, the
 *  same in all forks of LuaJIT. */
struct lua_library {
	void *(*new_state)(void);
	void (*open_libraries)(void *L);
	int (*load_file)(void *L, const char *path);
	int (*load_string)(void *L, const char *text);
	int (*call)(void *L, int arguments, int results, int handler);
	void *(*new_thread)(void *L);
	int (*resume)(void *L, int arguments);
	int (*yield)(void *L, int results);
	void (*push_function)(void *L, int (*function)(void *L), int upvalues);
	void (*create_table)(void *L, int elements, int keys);
	void (*push_string)(void *L, const char *text);
	void (*set_element)(void *L, int table, int index);
	void (*set_field)(void *L, int table, const char *key);
	const char *(*to_string)(void *L, int value, size_t *ret_len);
};

/** End the program with a message. @param what NULL: an unknown error. */
_Noreturn void lua_library_die(const char *what);

/** Load it for good; ends the program where that fails. */
struct lua_library lua_library_load(const char *path);

/** A VM with all libraries open; ends the program where there is none. */
void *lua_library_open(const struct lua_library *lua);

#endif
