/* SPDX-License-Identifier: MIT */
/*
 * A host whose threads have stacks that are known to the line.
 *
 *   loop     an event loop that has a VM and waits outside of it
 *   waiter   Lua, a C function, Lua, a C function that waits
 *   worker   Lua that works for ever, in a VM of its own
 *   native   works for ever without Lua
 *
 * The thread "waiter" has a name that a terminal would obey. Prints "ready" once all are where they
 * stay; ends when its input does, and tells how many of its waits were interrupted.
 */
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const char waiter_code[] = "jit.off()\n"
				  "local back, wait = ...\n"
				  "local function inner() local result = wait() return result end\n"
				  "local function outer()\n"
				  "local result = back(inner)\n"
				  "return result end\n"
				  "local result = outer()\n";
static const char worker_code[] = "jit.off()\n"
				  "local started = ...\n"
				  "local function work(s)\n"
				  "while true do s = (s * 3 + 1) % 1000003 end end\n"
				  "started()\n"
				  "local result = work(1)\n";

static int ended_fd; /* readable for ever once the host shall end */
static unsigned started, interrupted;

static void die(const char *text)
{
	fprintf(stderr, "stacks_target: %s\n", text);
	exit(1);
}

static int note_start(lua_State *L)
{
	(void)L;
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void wait_for_end(void)
{
	struct pollfd fd = { .fd = ended_fd, .events = POLLIN };

	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		__atomic_add_fetch(&interrupted, 1, __ATOMIC_SEQ_CST);
}

static int wait_in_c(lua_State *L)
{
	(void)L;
	wait_for_end();
	return 0;
}

static int call_back(lua_State *L)
{
	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	return 0;
}

static lua_State *open_vm(const char *code, size_t len)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, len, "=known") != 0)
		die("the program is wrong");
	return L;
}

static void *run_waiter(void *unused)
{
	lua_State *L = open_vm(waiter_code, sizeof(waiter_code) - 1);

	pthread_setname_np(pthread_self(), "\033[31mwait\xff\n");
	lua_pushcfunction(L, call_back);
	lua_pushcfunction(L, wait_in_c);
	lua_call(L, 2, 0);
	lua_close(L);
	return unused;
}

static void *run_worker(void *unused)
{
	lua_State *L = open_vm(worker_code, sizeof(worker_code) - 1);

	pthread_setname_np(pthread_self(), "worker");
	lua_pushcfunction(L, note_start);
	lua_call(L, 1, 0);
	return unused;
}

static void *run_native(void *unused)
{
	volatile double x = 0.5;

	pthread_setname_np(pthread_self(), "native");
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	for (;;)
		x = x * x + 1;
	return unused;
}

static void *run_loop(void *unused)
{
	lua_State *L = open_vm("local x = 1", 11);
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	pthread_setname_np(pthread_self(), "loop");
	lua_call(L, 0, 0);
	epoll_ctl(fd, EPOLL_CTL_ADD, ended_fd, &event);
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	while (epoll_wait(fd, &event, 1, -1) < 0 && errno == EINTR)
		__atomic_add_fetch(&interrupted, 1, __ATOMIC_SEQ_CST);
	lua_close(L);
	return unused;
}

int main(void)
{
	static void *(*const runs[])(void *) = { run_waiter, run_worker, run_native, run_loop };
	pthread_t threads[sizeof(runs) / sizeof(runs[0])];
	char byte;

	ended_fd = eventfd(0, 0);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (pthread_create(&threads[i], NULL, runs[i], NULL) != 0)
			die("no thread");
	while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < 4)
		usleep(1000);
	usleep(20000); /* from there into the call, or into the loop */
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		interrupted++;
	eventfd_write(ended_fd, 1);
	pthread_join(threads[0], NULL);
	pthread_join(threads[3], NULL);
	printf("interrupted %u\n", interrupted);
	return 0;
}
