/* SPDX-License-Identifier: MIT */
/* The shadow stack, the record, and the start of VMs and threads. */
#include "tests/live/cases/host.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SHADOW_MAX = 512,
	FRAME_TEXT = 256,
	THREADS_MAX = 8,
};

static struct {
	FILE *record;
	pthread_mutex_t lock;
	char **arguments;
	int threads, ready;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* One thread's. */
static _Thread_local struct {
	char text[SHADOW_MAX][FRAME_TEXT];
	unsigned count[SHADOW_MAX];
	unsigned depth;
	char scenario[64];
	const char *ranges;
	const char *source; /* kept alive by the script */
	size_t source_len;
	bool recorded;
	int number;
} self;

_Thread_local unsigned host_stay_us = 1000;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "cases_host: %s\n", what);
	exit(1);
}

/* ---- Shadow stack ----------------------------------------------------------------------- */

void shadow_push_many(const char *text, unsigned count)
{
	if (self.depth == SHADOW_MAX || strlen(text) >= FRAME_TEXT)
		die("the shadow stack is full");
	strcpy(self.text[self.depth], text);
	self.count[self.depth++] = count;
}

void shadow_push(const char *text)
{
	shadow_push_many(text, 1);
}

void shadow_pop(unsigned count)
{
	if (count > self.depth)
		die("the shadow stack is empty");
	self.depth -= count;
}

void shadow_record(const char *patterns)
{
	if (self.recorded)
		return;
	self.recorded = true;
	pthread_mutex_lock(&host.lock);
	fprintf(host.record, "E\t%s\t%s\t", self.scenario, patterns);
	for (unsigned i = 0; i < self.depth; i++)
		fprintf(host.record, "%s%s*%u", i ? ";" : "", self.text[i], self.count[i]);
	putc('\n', host.record);
	pthread_mutex_unlock(&host.lock);
}

static void begin_record(void)
{
	self.recorded = false;
	pthread_mutex_lock(&host.lock);
	fprintf(host.record, "S\t%s\t%s\n", self.scenario, self.ranges);
	pthread_mutex_unlock(&host.lock);
}

uint64_t host_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void host_work(uint64_t until_us)
{
	volatile unsigned x = 1;

	while (host_now_us() < until_us)
		for (int i = 0; i < 2000; i++)
			x = x * 31 + 7;
}

/* ---- Functions for the script ----------------------------------------------------------- */

static int host_push(lua_State *L)
{
	int count = lua_gettop(L);

	for (int i = 1; i <= count; i++)
		shadow_push(luaL_checkstring(L, i));
	return 0;
}

static int host_push_many(lua_State *L)
{
	shadow_push_many(luaL_checkstring(L, 1), (unsigned)luaL_checkinteger(L, 2));
	return 0;
}

static int host_pop(lua_State *L)
{
	shadow_pop((unsigned)luaL_checkinteger(L, 1));
	return 0;
}

/* mark() and reset(mark) are for what an error unwinds. */
static int host_mark(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)self.depth);
	return 1;
}

static int host_reset(lua_State *L)
{
	unsigned depth = (unsigned)luaL_checkinteger(L, 1);

	if (depth > self.depth)
		die("a mark above the shadow stack");
	self.depth = depth;
	return 0;
}

/* record(PATTERNS): the sequences of frames, separated by "|", that may stand above the stack. */
static int host_record(lua_State *L)
{
	shadow_record(luaL_optstring(L, 1, ""));
	return 0;
}

/* scenario(ID, RANGES, SOURCE, MICROSECONDS): what follows is of this scenario. */
static int host_scenario(lua_State *L)
{
	snprintf(self.scenario, sizeof(self.scenario), "%s", luaL_checkstring(L, 1));
	self.ranges = luaL_checkstring(L, 2);
	self.source = luaL_checklstring(L, 3, &self.source_len);
	host_stay_us = (unsigned)luaL_checkinteger(L, 4);
	begin_record();
	return 0;
}

static int host_ready(lua_State *L)
{
	(void)L;
	pthread_mutex_lock(&host.lock);
	if (++host.ready == host.threads) {
		puts("ready");
		fflush(stdout);
	}
	pthread_mutex_unlock(&host.lock);
	return 0;
}

static volatile sig_atomic_t stopped;

static void host_on_term(int number)
{
	(void)number;
	stopped = 1;
}

/* stopped(): whether SIGTERM has come. */
static int host_stopped(lua_State *L)
{
	lua_pushboolean(L, stopped);
	return 1;
}

static int host_time(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)host_now_us() / 1e6);
	return 1;
}

/* symbol(NAME): a lua_CFunction of one of the modules. */
static int host_symbol(lua_State *L)
{
	void *found = dlsym(RTLD_DEFAULT, luaL_checkstring(L, 1));

	if (!found)
		return luaL_error(L, "%s", dlerror());
	lua_pushcfunction(L, (lua_CFunction)found);
	return 1;
}

static int host_run_thread(lua_State *L);

static const luaL_Reg functions[] = {
	{ "push", host_push },
	{ "push_many", host_push_many },
	{ "pop", host_pop },
	{ "mark", host_mark },
	{ "reset", host_reset },
	{ "record", host_record },
	{ "ready", host_ready },
	{ "scenario", host_scenario },
	{ "time", host_time },
	{ "symbol", host_symbol },
	{ "stopped", host_stopped },
	{ "thread", host_run_thread },
	{ NULL, NULL },
};

/* ---- VMs -------------------------------------------------------------------------------- */

static void add_functions(lua_State *L, const luaL_Reg *list)
{
	for (; list->name; list++) {
		lua_pushcfunction(L, list->func);
		lua_setfield(L, -2, list->name);
	}
}

lua_State *host_new_vm(int number)
{
	lua_State *L = luaL_newstate();

	if (!L)
		die("no VM");
	luaL_openlibs(L);
	lua_newtable(L);
	add_functions(L, functions);
	add_functions(L, host_calls);
	add_functions(L, host_stacks);
	lua_setfield(L, LUA_REGISTRYINDEX, "host");
	lua_pushinteger(L, number);
	lua_setfield(L, LUA_REGISTRYINDEX, "host_number");
	if (!luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF))
		die("the compiler cannot be turned off");
	return L;
}

void host_push_function(lua_State *L, const char *name)
{
	char chunk[80];
	bool current;

	luaL_checkstack(L, 8, "no room");
	lua_getfield(L, LUA_REGISTRYINDEX, "host_scenario");
	current = lua_isstring(L, -1) && strcmp(lua_tostring(L, -1), self.scenario) == 0;
	lua_pop(L, 1);
	if (!current) {
		snprintf(chunk, sizeof(chunk), "@s%s", self.scenario);
		if (luaL_loadbuffer(L, self.source, self.source_len, chunk) != 0)
			die(lua_tostring(L, -1));
		lua_getfield(L, LUA_REGISTRYINDEX, "host");
		lua_call(L, 1, 1);
		lua_setfield(L, LUA_REGISTRYINDEX, "host_functions");
		lua_pushstring(L, self.scenario);
		lua_setfield(L, LUA_REGISTRYINDEX, "host_scenario");
	}
	lua_getfield(L, LUA_REGISTRYINDEX, "host_functions");
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
}

/* ---- A thread for one scenario ---------------------------------------------------------- */

struct side {
	const char *scenario, *ranges, *source, *name;
	size_t source_len;
	unsigned stay_us;
};

/* A VM that lives as long as its thread. Its record is one of its own, for it has another root. */
static void *host_side_thread(void *context)
{
	const struct side *side = context;
	lua_State *L;

	snprintf(self.scenario, sizeof(self.scenario), "1%s", side->scenario);
	self.ranges = side->ranges;
	self.source = side->source;
	self.source_len = side->source_len;
	host_stay_us = side->stay_us;
	begin_record();
	shadow_push("N:host_side_thread");
	L = host_new_vm(0);
	host_push_function(L, side->name);
	lua_call(L, 0, 0);
	lua_close(L);
	shadow_pop(1);
	return NULL;
}

/* thread(NAME): function NAME of the scenario in a thread and a VM that begin now. */
static int host_run_thread(lua_State *L)
{
	const struct side side = { .scenario = self.scenario,
				   .ranges = self.ranges,
				   .source = self.source,
				   .source_len = self.source_len,
				   .stay_us = host_stay_us,
				   .name = luaL_checkstring(L, 1) };
	pthread_t thread;

	shadow_push("C:host_run_thread");
	if (pthread_create(&thread, NULL, host_side_thread, (void *)(uintptr_t)&side) != 0)
		die("no thread");
	pthread_join(thread, NULL);
	shadow_pop(1);
	return 0;
}

/* ---- Threads ---------------------------------------------------------------------------- */

/* One thread: a VM that runs the script. */
static void *host_thread(void *number)
{
	lua_State *L = host_new_vm(0);

	self.number = (int)(intptr_t)number;
	shadow_push("N:host_thread");
	if (luaL_loadfile(L, host.arguments[0]) != 0)
		die(lua_tostring(L, -1));
	lua_getfield(L, LUA_REGISTRYINDEX, "host");
	for (int i = 1; i <= 3; i++)
		lua_pushstring(L, host.arguments[i]);
	lua_pushinteger(L, self.number);
	if (lua_pcall(L, 5, 0, 0) != 0)
		die(lua_tostring(L, -1));
	shadow_pop(1);
	lua_close(L);
	return NULL;
}

int host_run(char **arguments)
{
	pthread_t threads[THREADS_MAX];

	signal(SIGTERM, host_on_term);
	host.arguments = arguments;
	host.threads = atoi(arguments[5]);
	host.record = fopen(arguments[4], "w");
	if (!host.record || host.threads < 1 || host.threads > THREADS_MAX)
		die("bad arguments");
	if (host.threads == 1) {
		shadow_push("N:main");
		shadow_push("N:host_run");
		host_thread(NULL);
	}
	for (int i = 0; host.threads > 1 && i < host.threads; i++)
		if (pthread_create(&threads[i], NULL, host_thread, (void *)(intptr_t)i) != 0)
			die("no thread");
	for (int i = 0; host.threads > 1 && i < host.threads; i++)
		pthread_join(threads[i], NULL);
	return fclose(host.record) == 0 ? 0 : 1;
}
