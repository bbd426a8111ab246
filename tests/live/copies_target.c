/* SPDX-License-Identifier: MIT */
/*
 * A host with one copy of LuaJIT's library after the other: copies_target MILLISECONDS LIBRARY...
 * runs Lua in the first one all the time, says that it is ready, and on a byte of input goes on to
 * the others: each is loaded while the first runs, has its own state in a thread of its own until
 * that has used so many milliseconds of processor time, and is unloaded. Every third leaves its
 * place in memory to the next.
 */
#include <dlfcn.h>
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { NAP_NS = 2 * 1000 * 1000, NS_PER_MS = 1000 * 1000, LOCATION_BYTES = 64 << 10 };

/** The functions of one copy. */
struct copy {
	void *handle;
	const char *chunk;
	volatile bool stop;
	lua_State *(*new_state)(void);
	__typeof__(luaL_openlibs) *openlibs;
	__typeof__(luaL_loadbuffer) *loadbuffer;
	__typeof__(lua_pcall) *pcall;
	__typeof__(lua_close) *close;
};

static const char code[] = "jit.off()\n"
			   "local function work(n) local x = 0.5 for i = 1, n do x = (x * x + i) % "
			   "1000.25 end return x end\n"
			   "function round() local x = work(5000) return x end\n"
			   "for i = 1, 100 do local x = round() end\n";

static void find(const struct copy *copy, const char *name, void *ret_function)
{
	void *function = dlsym(copy->handle, name);

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(ret_function, &function, sizeof(function));
}

static void load(struct copy *copy, const char *path, const char *chunk)
{
	*copy = (struct copy){ .handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), .chunk = chunk };
	if (!copy->handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	find(copy, "luaL_newstate", &copy->new_state);
	find(copy, "luaL_openlibs", &copy->openlibs);
	find(copy, "luaL_loadbuffer", &copy->loadbuffer);
	find(copy, "lua_pcall", &copy->pcall);
	find(copy, "lua_close", &copy->close);
}

static void *run(void *argument)
{
	struct copy *copy = argument;
	lua_State *L = copy->new_state();

	copy->openlibs(L);
	while (!copy->stop)
		if (copy->loadbuffer(L, code, sizeof(code) - 1, copy->chunk) != 0 ||
		    copy->pcall(L, 0, 0, 0) != 0)
			exit(1);
	copy->close(L);
	return NULL;
}

static void wait_until_used(pthread_t thread, long ms)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct timespec used = { 0 };
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) != 0)
		exit(1);
	while (used.tv_sec * 1000 + used.tv_nsec / NS_PER_MS < ms) {
		nanosleep(&nap, NULL);
		if (clock_gettime(clock, &used) != 0)
			exit(1);
	}
}

static void run_other(const char *path, unsigned number, long ms)
{
	struct copy copy;
	pthread_t thread;
	Dl_info place;
	char chunk[32];

	snprintf(chunk, sizeof(chunk), "=copy%u", number);
	load(&copy, path, chunk);
	pthread_create(&thread, NULL, run, &copy);
	wait_until_used(thread, ms);
	copy.stop = true;
	pthread_join(thread, NULL);
	if (!dladdr(dlsym(copy.handle, "luaL_newstate"), &place))
		exit(1);
	dlclose(copy.handle);
	if (number % 3 != 0)
		mmap(place.dli_fbase, LOCATION_BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
	struct copy first;
	pthread_t thread;

	if (argc < 3)
		return 1;
	load(&first, argv[2], "=copy1");
	pthread_create(&thread, NULL, run, &first);
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 3; i < argc; i++)
		run_other(argv[i], (unsigned)i - 1, strtol(argv[1], NULL, 10));
	first.stop = true;
	pthread_join(thread, NULL);
	return 0;
}
