/* SPDX-License-Identifier: MIT */
/*
 * Run a Lua file as `luajit` does, by the LuaJIT library that it is told.
 * Usage: lua_host LIBRARY FILE [ARGUMENT...]
 */
#include "lua_library.h"

/* Source: lua.h, the same in all forks of LuaJIT. */
enum { LUA_GLOBALS = -10002 };

/* The file is arg[0]. */
static void set_arguments(const struct lua_library *lua, void *L, int count, char **arguments)
{
	lua->create_table(L, count, 0);
	for (int i = 0; i < count; i++) {
		lua->push_string(L, arguments[i]);
		lua->set_element(L, -2, i);
	}
	lua->set_field(L, LUA_GLOBALS, "arg");
}

int main(int argc, char **argv)
{
	struct lua_library lua;
	void *L;

	if (argc < 3)
		lua_library_die("usage: lua_host LIBRARY FILE [ARGUMENT...]");
	lua = lua_library_load(argv[1]);
	L = lua_library_open(&lua);
	set_arguments(&lua, L, argc - 2, argv + 2);
	if (lua.load_file(L, argv[2]) != 0 || lua.call(L, 0, 0, 0) != 0)
		lua_library_die(lua.to_string(L, -1, NULL));
	return 0;
}
