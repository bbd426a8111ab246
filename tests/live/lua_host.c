/* SPDX-License-Identifier: MIT */
/*
 * Run a Lua file as `luajit` does, by the LuaJIT library that an argument names.
 * Usage: lua_host [--resume] LIBRARY FILE [ARGUMENT...]
 * With --resume as servers do: in a coroutine, which C resumes each time it has called pause().
 */
#include "lua_library.h"

#include <stdbool.h>
#include <string.h>

/* Source: lua.h, the same in all forks of LuaJIT. */
enum { LUA_GLOBALS = -10002, LUA_YIELDED = 1 };

static struct lua_library lua;

/* The file is arg[0]. */
static void set_arguments(void *L, int count, char **arguments)
{
	lua.create_table(L, count, 0);
	for (int i = 0; i < count; i++) {
		lua.push_string(L, arguments[i]);
		lua.set_element(L, -2, i);
	}
	lua.set_field(L, LUA_GLOBALS, "arg");
}

static int pause_coroutine(void *L)
{
	return lua.yield(L, 0);
}

static int run_resumed(void *L, const char *path)
{
	int status;

	lua.push_function(L, pause_coroutine, 0);
	lua.set_field(L, LUA_GLOBALS, "pause");
	status = lua.load_file(L, path);
	if (status != 0)
		return status;
	do
		status = lua.resume(L, 0);
	while (status == LUA_YIELDED);
	return status;
}

int main(int argc, char **argv)
{
	bool resumed = argc > 1 && strcmp(argv[1], "--resume") == 0;
	void *L;
	int status;

	argc -= resumed;
	argv += resumed;
	if (argc < 3)
		lua_library_die("usage: lua_host [--resume] LIBRARY FILE [ARGUMENT...]");
	lua = lua_library_load(argv[1]);
	L = lua_library_open(&lua);
	set_arguments(L, argc - 2, argv + 2);
	if (resumed) {
		L = lua.new_thread(L);
		status = run_resumed(L, argv[2]);
	} else {
		status = lua.load_file(L, argv[2]);
		if (status == 0)
			status = lua.call(L, 0, 0, 0);
	}
	if (status != 0)
		lua_library_die(lua.to_string(L, -1, NULL));
	return 0;
}
