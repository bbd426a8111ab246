/* SPDX-License-Identifier: MIT */
/*
 * A host with three busy threads: two with a Lua state each, one without Lua; and a main thread
 * that sleeps. Prints "ready" and runs for the given number of seconds. With a second argument, one
 * thread after the other instead, each with a Lua state and so many milliseconds of processor time,
 * and a pause of twice that before the next. With "loops" instead, four threads at once that do
 * other things most of the time and call Lua in between, as event loops do.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static time_t stop;

static const char code[] = "jit.off()\n"
			   "local stop, name = ...\n"
			   "local function work(n) local x = 0.5 for i = 1, n do x = (x * x + i) % "
			   "1000.25 end return x end\n"
			   "_G[name] = function() local x = work(5000) return x end\n"
			   "while os.time() < stop do local x = _G[name]() end\n";

static void *run_lua(void *name)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, sizeof(code) - 1, name) != 0)
		exit(1);
	lua_pushnumber(L, (lua_Number)stop);
	lua_pushstring(L, (const char *)name + 1);
	if (lua_pcall(L, 2, 0, 0) != 0) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(1);
	}
	lua_close(L);
	return NULL;
}

static void *run_c(void *unused)
{
	volatile double x = 0.5;

	(void)unused;
	while (time(NULL) < stop)
		for (int i = 0; i < 100000; i++)
			x = x * x + i;
	return NULL;
}

static const char short_code[] =
	"jit.off()\n"
	"local seconds = ...\n"
	"local function work(n) local x = 0.5 for i = 1, n do x = (x * x + i) % "
	"1000.25 end return x end\n"
	"function brief() local x = work(5000) return x end\n"
	"local ffi = require 'ffi'\n"
	"ffi.cdef 'struct timespec { long s, ns; }; int clock_gettime(int, struct timespec *);'\n"
	"local at = ffi.new 'struct timespec'\n"
	"local function used() ffi.C.clock_gettime(3, at) return tonumber(at.s) + "
	"tonumber(at.ns) / 1e9 end\n" /* CLOCK_THREAD_CPUTIME_ID */
	"while used() < seconds do local x = brief() end\n";

static void *run_short(void *milliseconds)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, short_code, sizeof(short_code) - 1, "=short") != 0)
		exit(1);
	lua_pushnumber(L, *(int *)milliseconds / 1e3);
	if (lua_pcall(L, 1, 0, 0) != 0) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(1);
	}
	lua_close(L);
	return NULL;
}

static int run_short_threads(int milliseconds)
{
	pthread_t thread;

	puts("ready");
	fflush(stdout);
	while (time(NULL) < stop) {
		pthread_create(&thread, NULL, run_short, &milliseconds);
		pthread_join(thread, NULL);
		usleep(2000 * (unsigned)milliseconds);
	}
	return 0;
}

enum { LOOPS = 4 };

static const char loop_code[] = "jit.off()\n"
				"function brief() local x = 0.5 for i = 1, 5000 do "
				"x = (x * x + i) % 1000.25 end return x end\n";

static double used_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* 6 ms in C, 4 ms in Lua. */
static void *run_loop(void *name)
{
	lua_State *L = luaL_newstate();
	volatile double x = 0.5;

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, loop_code, sizeof(loop_code) - 1, name) != 0 ||
	    lua_pcall(L, 0, 0, 0) != 0)
		exit(1);
	while (time(NULL) < stop) {
		double start = used_cpu();

		while (used_cpu() - start < 6e-3)
			for (int i = 0; i < 10000; i++)
				x = x * x + i;
		while (used_cpu() - start < 10e-3) {
			lua_getglobal(L, "brief");
			lua_call(L, 0, 0);
		}
	}
	lua_close(L);
	return NULL;
}

static int run_loops(void)
{
	static char names[LOOPS][8] = { "=loop0", "=loop1", "=loop2", "=loop3" };
	pthread_t threads[LOOPS];

	for (int i = 0; i < LOOPS; i++)
		pthread_create(&threads[i], NULL, run_loop, names[i]);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < LOOPS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static char names[2][8] = { "=first", "=second" };
	pthread_t threads[3];

	stop = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	if (argc > 2 && strcmp(argv[2], "loops") == 0)
		return run_loops();
	if (argc > 2)
		return run_short_threads(atoi(argv[2]));
	pthread_create(&threads[0], NULL, run_lua, names[0]);
	pthread_create(&threads[1], NULL, run_lua, names[1]);
	pthread_create(&threads[2], NULL, run_c, NULL);
	usleep(100 * 1000);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
