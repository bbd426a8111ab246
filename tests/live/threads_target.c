/* SPDX-License-Identifier: MIT */
/*
 * A host with three busy threads: two with a Lua state each, one without Lua; and a main thread
 * that sleeps. Prints "ready" and runs for the given number of seconds.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	static char names[2][8] = { "=first", "=second" };
	pthread_t threads[3];

	stop = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
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
