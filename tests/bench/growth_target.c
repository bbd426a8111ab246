/* SPDX-License-Identifier: MIT */
/*
 * A process that has much of one thing: growth_target KIND SIZE [FILE]. All kinds end in the same
 * interpreted loop a few frames deep, at the first thread, but for traces.
 *
 *   native     so many C frames below the Lua state's
 *   lua        so many Lua frames below the loop's
 *   threads    so many threads in all, each with a Lua state; all but the first one nap
 *   traces     so many loops that are compiled and run one after the other: the Lua program FILE
 *   libraries  so many libraries, the copies FILE/1, FILE/2, ...
 *   heap       so many MiB of tables
 *
 * Prints a line "ready ..." when all is there, and runs until it is killed.
 */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAP_US = 1000 * 1000 };

static const char loop[] = "jit.off(true, true)\n"
			   "local function work(n)\n"
			   "  local x = 0.5\n"
			   "  for i = 1, n do x = (x * x + i) % 1000.25 end\n"
			   "  return x\n"
			   "end\n"
			   "local function third(n) return work(n) + 1 end\n"
			   "local function second(n) return third(n) + 1 end\n"
			   "local function first(n) return second(n) + 1 end\n"
			   "function spin() ready() while true do first(2000) end end\n"
			   /* Two slots a frame: it has neither arguments nor locals. */
			   "local left\n"
			   "local function descend()\n"
			   "  left = left - 1\n"
			   "  if left <= 0 then spin() else descend() end\n"
			   "  left = left + 1\n"
			   "end\n"
			   "function deep(depth) left = depth descend() end\n"
			   "function nap() while true do sleep() end end\n";

/* Numbers in tables of some KiB each, which a loop that is compiled fills. */
static const char heap[] = "local mib, kept = ..., {}\n"
			   "local new = require('table.new')\n"
			   "collectgarbage('stop')\n"
			   "for i = 1, mib * 256 do\n"
			   "  local numbers = new(510, 0)\n"
			   "  for k = 1, 510 do numbers[k] = i + k end\n"
			   "  kept[i] = numbers\n"
			   "end\n"
			   "return kept\n";

static pthread_barrier_t started;

static int tell_ready(lua_State *L)
{
	(void)L;
	puts("ready");
	fflush(stdout);
	return 0;
}

static int sleep_a_while(lua_State *L)
{
	(void)L;
	usleep(NAP_US);
	return 0;
}

static int complain(lua_State *L)
{
	fprintf(stderr, "growth_target: %s\n", lua_tostring(L, -1));
	return 1;
}

static lua_State *create_state(void)
{
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	lua_register(L, "ready", tell_ready);
	lua_register(L, "sleep", sleep_a_while);
	if (luaL_dostring(L, loop) != 0)
		exit(complain(L));
	return L;
}

/* @param function A global one. @param argument Its argument. */
static int call(lua_State *L, const char *function, long argument)
{
	lua_getglobal(L, function);
	lua_pushinteger(L, (lua_Integer)argument);
	return lua_pcall(L, 1, 0, 0) == 0 ? 0 : complain(L);
}

/* ---- Kinds: each does not return, but for failures -------------------------------------- */

static int run_native(lua_State *L, long depth, const char *path) __attribute__((noinline));

static int run_native(lua_State *L, long depth, const char *path)
{
	int status = depth > 1 ? run_native(L, depth - 1, path) : call(L, "spin", 0);

	__asm__ volatile("" : : : "memory"); /* so that it is no jump instead of a call */
	return status;
}

static int run_lua(lua_State *L, long depth, const char *path)
{
	(void)path;
	return call(L, "deep", depth);
}

static void *nap(void *argument)
{
	lua_State *L = create_state();

	(void)argument;
	pthread_barrier_wait(&started);
	call(L, "nap", 0);
	return NULL;
}

static int run_threads(lua_State *L, long count, const char *path)
{
	(void)path;
	pthread_barrier_init(&started, NULL, (unsigned)count);
	for (long i = 1; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, nap, NULL) != 0)
			return 1;
	}
	pthread_barrier_wait(&started);
	return call(L, "spin", 0);
}

static int run_traces(lua_State *L, long count, const char *path)
{
	lua_newtable(L);
	lua_pushinteger(L, (lua_Integer)count);
	lua_rawseti(L, -2, 1);
	lua_setglobal(L, "arg");
	return luaL_dofile(L, path) == 0 ? 0 : complain(L);
}

static int run_libraries(lua_State *L, long count, const char *path)
{
	char name[4096];

	for (long i = 1; i <= count; i++) {
		snprintf(name, sizeof(name), "%s/%ld", path, i);
		if (!dlopen(name, RTLD_NOW)) {
			fprintf(stderr, "growth_target: %s\n", dlerror());
			return 1;
		}
	}
	return call(L, "spin", 0);
}

static int run_heap(lua_State *L, long mib, const char *path)
{
	(void)path;
	if (luaL_loadstring(L, heap) != 0)
		return complain(L);
	lua_pushinteger(L, (lua_Integer)mib);
	if (lua_pcall(L, 1, 1, 0) != 0)
		return complain(L);
	return call(L, "spin", 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(lua_State *L, long size, const char *path);
	} kinds[] = {
		{ "native", run_native },	{ "lua", run_lua },
		{ "threads", run_threads },	{ "traces", run_traces },
		{ "libraries", run_libraries }, { "heap", run_heap },
	};

	for (size_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			return kinds[i].run(create_state(), atol(argv[2]), argc > 3 ? argv[3] : "");
	fprintf(stderr, "usage: growth_target KIND SIZE [FILE]\n");
	return 1;
}
