/* SPDX-License-Identifier: MIT */
/*
 * A host whose Lua runs on a native stack whose pages are not mapped most of the time, though their
 * contents are kept, as those of a process that was swapped out: another thread has the kernel drop
 * them each millisecond. Whoever touches a page, or reads it as process_vm_readv() does, has it
 * mapped again; what may not wait for that, does not see it. Prints "ready" and runs for the given
 * number of seconds.
 */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, DEPTH = 4 };

static time_t stop;
static void *stack;

static const char code[] = "jit.off()\n"
			   "local stop = ...\n"
			   "local function work(n) local x = 0.5 for i = 1, n do x = (x * x + i) % "
			   "1000.25 end return x end\n"
			   "while os.time() < stop do local x = work(5000) end\n";

static void run_lua(void)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, sizeof(code) - 1, "=absent") != 0)
		exit(1);
	lua_pushnumber(L, (lua_Number)stop);
	if (lua_pcall(L, 1, 0, 0) != 0) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(1);
	}
	lua_close(L);
}

/* Frames of a page, with nothing in them that is looked at meanwhile. */
__attribute__((noinline)) static int descend(int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	if (depth == 0)
		run_lua();
	else
		return descend(depth - 1) + room[0];
	return room[0];
}

static void *run(void *unused)
{
	(void)unused;
	descend(DEPTH);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timespec millisecond = { .tv_nsec = 1000 * 1000 };
	pthread_attr_t attributes;
	pthread_t thread;
	int file = memfd_create("stack", 0);

	if (argc < 2 || file < 0 || ftruncate(file, STACK_BYTES) != 0)
		return 1;
	stop = time(NULL) + strtol(argv[1], NULL, 10);
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attributes) != 0 ||
	    pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0 ||
	    pthread_create(&thread, &attributes, run, NULL) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (time(NULL) < stop) {
		/* Of a shared mapping only the pages' entries go. */
		madvise(stack, STACK_BYTES, MADV_DONTNEED);
		nanosleep(&millisecond, NULL);
	}
	pthread_join(thread, NULL);
	return 0;
}
