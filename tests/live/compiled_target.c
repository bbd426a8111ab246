/* SPDX-License-Identifier: MIT */
/*
 * A host with so many threads, each in compiled code of a VM of its own all the time:
 * compiled_target COUNT. Says "ready" when all of them are there, and ends with its input.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 16, NAP_US = 10 * 1000 };

static atomic_int compiled;

static const char definition[] =
	"local function leaf(x) if x % 3 == 0 then return 1 end return x end\n"
	"function work(n) local s = 0 for i = 1, n do s = s + leaf(i) end "
	"return s end\n"
	"for i = 1, 100 do work(10000) end\n";
static const char loop[] = "while true do work(1e9) end\n";

static void run_chunk(lua_State *L, const char *code, size_t len, const char *name)
{
	if (luaL_loadbuffer(L, code, len, name) == 0 && lua_pcall(L, 0, 0, 0) == 0)
		return;
	fprintf(stderr, "%s\n", lua_tostring(L, -1));
	exit(1);
}

static void *run_thread(void *number)
{
	lua_State *L = luaL_newstate();
	char name[32];

	luaL_openlibs(L);
	snprintf(name, sizeof(name), "=vm%d", *(int *)number);
	run_chunk(L, definition, sizeof(definition) - 1, name);
	compiled++;
	run_chunk(L, loop, sizeof(loop) - 1, name);
	return NULL;
}

int main(int argc, char **argv)
{
	static int numbers[THREADS_MAX];
	int count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	if (count < 1 || count > THREADS_MAX)
		return 1;
	for (int i = 0; i < count; i++) {
		numbers[i] = i + 1;
		pthread_create(&thread, NULL, run_thread, &numbers[i]);
	}
	while (compiled < count)
		usleep(NAP_US);
	usleep(NAP_US);
	puts("ready");
	fflush(stdout);
	getchar();
	_exit(0);
}
