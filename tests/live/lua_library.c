/* SPDX-License-Identifier: MIT */
#include "lua_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void lua_library_die(const char *what)
{
	fprintf(stderr, "host: %s\n", what ? what : "unknown error");
	exit(1);
}

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		lua_library_die(dlerror());
	return found;
}

struct lua_library lua_library_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	struct lua_library lua;

	if (!library)
		lua_library_die(dlerror());
	*(void **)&lua.new_state = find(library, "luaL_newstate");
	*(void **)&lua.open_libraries = find(library, "luaL_openlibs");
	*(void **)&lua.load_file = find(library, "luaL_loadfile");
	*(void **)&lua.load_string = find(library, "luaL_loadstring");
	*(void **)&lua.call = find(library, "lua_pcall");
	*(void **)&lua.new_thread = find(library, "lua_newthread");
	*(void **)&lua.resume = find(library, "lua_resume");
	*(void **)&lua.yield = find(library, "lua_yield");
	*(void **)&lua.push_function = find(library, "lua_pushcclosure");
	*(void **)&lua.create_table = find(library, "lua_createtable");
	*(void **)&lua.push_string = find(library, "lua_pushstring");
	*(void **)&lua.set_element = find(library, "lua_rawseti");
	*(void **)&lua.set_field = find(library, "lua_setfield");
	*(void **)&lua.to_string = find(library, "lua_tolstring");
	return lua;
}

void *lua_library_open(const struct lua_library *lua)
{
	void *L = lua->new_state();

	if (!L)
		lua_library_die("no VM");
	lua->open_libraries(L);
	return L;
}
