/* SPDX-License-Identifier: MIT */
/*
 * Threads that live shortly: one after the other, each with a VM of its own.
 *
 * Usage: churn_target SECONDS CPU_US STOP
 *
 * Each thread runs Lua until it has used CPU_US of a processor, or a little more. Ends after
 * SECONDS, or when there is a file STOP. Prints "ready", and at its end "CHURN threads N used_us
 * N", the time of all threads in Lua.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char chunk[] = "local done = ...\n"
			    "local function churn(n) local x = 0.5\n"
			    "  for i = 1, n do x = (x * x + i) % 1000.25 end return x end\n"
			    "repeat churn(1000) until done()\n";

static uint64_t limit_us, used_us;

static uint64_t thread_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int is_done(lua_State *L)
{
	lua_pushboolean(L, thread_us() >= limit_us);
	return 1;
}

static void *churn(void *argument)
{
	lua_State *L = luaL_newstate();
	uint64_t begin_us;

	(void)argument;
	if (!L || luaL_loadstring(L, chunk) != 0)
		exit(1);
	begin_us = thread_us();
	lua_pushcfunction(L, is_done);
	if (lua_pcall(L, 1, 0, 0) != 0)
		exit(1);
	used_us += thread_us() - begin_us;
	lua_close(L);
	return NULL;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	unsigned threads = 0;

	limit_us = argc > 2 ? (uint64_t)atoi(argv[2]) : 3000;
	puts("ready");
	fflush(stdout);
	for (; time(NULL) < end && !(argc > 3 && access(argv[3], F_OK) == 0); threads++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, churn, NULL) != 0)
			return 1;
		pthread_join(thread, NULL);
	}
	printf("CHURN threads %u used_us %llu\n", threads, (unsigned long long)used_us);
	return 0;
}
