/* SPDX-License-Identifier: MIT */
/*
 * Run a Lua file as `luajit` does, by the LuaJIT library that an argument names, with functions
 * that make coroutines as C programs do:
 *
 *   host.start(f)  a coroutine that C creates and resumes
 *   host.wait()    yield, called from C
 *   host.fiber(f)  run f in a coroutine on a native stack of its own, until it calls host.leave()
 *   host.leave()   leave that stack for the one before, in the middle of this function
 *
 * Usage: coroutines_target LIBRARY FILE [ARGUMENT...]
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <lua.h>

#include "lua_library.h"

enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 64 * 1024 };

/** The library's functions, besides those of struct lua_library. */
static struct {
	lua_State *(*newthread)(lua_State *L);
	void (*xmove)(lua_State *from, lua_State *to, int count);
	void (*pushvalue)(lua_State *L, int index);
	int (*resume)(lua_State *L, int count);
	int (*yield)(lua_State *L, int count);
	void (*pushcclosure)(lua_State *L, lua_CFunction function, int count);
} lua;

static struct lua_library library;

static ucontext_t before, inside;
static lua_State *fiber;

static void load_functions(void)
{
	*(void **)&lua.newthread = dlsym(RTLD_DEFAULT, "lua_newthread");
	*(void **)&lua.xmove = dlsym(RTLD_DEFAULT, "lua_xmove");
	*(void **)&lua.pushvalue = dlsym(RTLD_DEFAULT, "lua_pushvalue");
	*(void **)&lua.resume = dlsym(RTLD_DEFAULT, "lua_resume");
	*(void **)&lua.yield = dlsym(RTLD_DEFAULT, "lua_yield");
	*(void **)&lua.pushcclosure = dlsym(RTLD_DEFAULT, "lua_pushcclosure");
	if (!lua.newthread || !lua.xmove || !lua.pushvalue || !lua.resume || !lua.yield ||
	    !lua.pushcclosure)
		lua_library_die("a function is missing in the library");
}

/* With the function on its stack. @return the coroutine, which is on the stack of @L. */
static lua_State *make_coroutine(lua_State *L)
{
	lua_State *coroutine = lua.newthread(L);

	lua.pushvalue(L, 1);
	lua.xmove(L, coroutine, 1);
	return coroutine;
}

static int start(lua_State *L)
{
	if (lua.resume(make_coroutine(L), 0) > LUA_YIELD)
		lua_library_die("a coroutine failed");
	return 1;
}

static int wait_here(lua_State *L)
{
	return lua.yield(L, 0);
}

static void run_fiber(void)
{
	if (library.call(fiber, 0, 0, 0) != 0)
		lua_library_die(library.to_string(fiber, -1, NULL));
	lua_library_die("a fiber came to its end");
}

/* A page that nobody may touch lies below, as below those of programs that have such stacks. */
static int run_on_own_stack(lua_State *L)
{
	char *stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (stack == MAP_FAILED ||
	    mprotect(stack + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
		lua_library_die("no native stack");
	fiber = make_coroutine(L);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack + GUARD_BYTES;
	inside.uc_stack.ss_size = STACK_BYTES;
	makecontext(&inside, run_fiber, 0);
	swapcontext(&before, &inside);
	return 1;
}

static int leave(lua_State *L)
{
	(void)L;
	swapcontext(&inside, &before);
	return 0;
}

static void add_functions(void *L)
{
	static const struct {
		const char *name;
		lua_CFunction function;
	} functions[] = { { "start", start },
			  { "wait", wait_here },
			  { "fiber", run_on_own_stack },
			  { "leave", leave } };

	library.create_table(L, 0, 4);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		lua.pushcclosure(L, functions[i].function, 0);
		library.set_field(L, -2, functions[i].name);
	}
	library.set_field(L, LUA_GLOBALSINDEX, "host");
}

int main(int argc, char **argv)
{
	void *L;

	if (argc < 3)
		lua_library_die("usage: coroutines_target LIBRARY FILE [ARGUMENT...]");
	library = lua_library_load(argv[1]);
	load_functions();
	L = lua_library_open(&library);
	add_functions(L);
	library.create_table(L, argc, 0);
	for (int i = 2; i < argc; i++) {
		library.push_string(L, argv[i]);
		library.set_element(L, -2, i - 2);
	}
	library.set_field(L, LUA_GLOBALSINDEX, "arg");
	if (library.load_file(L, argv[2]) != 0 || library.call(L, 0, 0, 0) != 0)
		lua_library_die(library.to_string(L, -1, NULL));
	return 0;
}
