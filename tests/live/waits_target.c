/* SPDX-License-Identifier: MIT */
/*
 * A host whose threads each wait in another system call, and one more works in Lua. All that a
 * thread does it does from Lua.
 *
 * Usage: waits_target STOP
 *
 * Prints "ready" once all wait. Ends when there is a file STOP: then each wait is ended as it
 * should be, and the last line tells how many ended otherwise, and how many signals of those that
 * had been pending all the time were lost or are out of order.
 */
#include <errno.h>
#include <lauxlib.h>
#include <linux/futex.h>
#include <lualib.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PENDING = 5,
	SLEEP_MS = 300,
	/* Longer than any thread needs to begin its wait. */
	BEGIN_MS = 200,
};

static volatile int stop;
static int pipe_ends[2], polled_ends[2], epolled_ends[2], vfork_ends[2], sockets[2], listener,
	epoll_fd;
static uint32_t futex_word;
static struct sockaddr_in address = { .sin_family = AF_INET };

/* ---- The waits: each returns whether it ended as it should ------------------------------ */

static int wait_in_read(void)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 1;
}

static int wait_in_recv(void)
{
	char byte;

	return recv(sockets[0], &byte, 1, 0) == 1;
}

static int wait_in_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	return fd >= 0 && close(fd) == 0;
}

static int wait_in_poll(void)
{
	struct pollfd poller = { .fd = polled_ends[0], .events = POLLIN };

	return poll(&poller, 1, -1) == 1;
}

static int wait_in_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, -1) == 1;
}

static int wait_in_futex(void)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0;
}

static int wait_for_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigwaitinfo(&set, NULL) == SIGUSR2;
}

/* Nothing but its time ends it. */
static int wait_in_sleep(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_MS * 1000000 };

	while (!stop)
		if (nanosleep(&time, NULL) != 0)
			return 0;
	return 1;
}

/* Its child waits in its place, in memory that both have. */
static int wait_in_vfork(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		char byte;

		_exit(read(vfork_ends[0], &byte, 1) == 1 ? 0 : 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int do_nothing(void)
{
	return 1;
}

static const struct waiting {
	const char *name;
	int (*wait)(void);
} waits[] = {
	{ "work", do_nothing },	      { "read", wait_in_read },	     { "recv", wait_in_recv },
	{ "accept", wait_in_accept }, { "poll", wait_in_poll },	     { "epoll", wait_in_epoll },
	{ "futex", wait_in_futex },   { "signal", wait_for_signal }, { "sleep", wait_in_sleep },
	{ "vfork", wait_in_vfork },
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static const char code[] = "local name, wait, stopped = ...\n"
			   "jit.off()\n"
			   "local function work() local x = 0.5 for i = 1, 10000 do x = (x * x + "
			   "i) % 1000.25 end end\n"
			   "if name == 'work' then while not stopped() do work() end end\n"
			   "return wait()\n";

/* ---- Threads ---------------------------------------------------------------------------- */

static int call_wait(lua_State *L)
{
	const struct waiting *waiting = lua_touserdata(L, lua_upvalueindex(1));

	lua_pushboolean(L, waiting->wait());
	return 1;
}

static int is_stopped(lua_State *L)
{
	lua_pushboolean(L, stop);
	return 1;
}

static void *run(void *argument)
{
	const struct waiting *waiting = argument;
	lua_State *L = luaL_newstate();
	bool good;

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, sizeof(code) - 1, "=waits") != 0)
		exit(1);
	lua_pushstring(L, waiting->name);
	lua_pushlightuserdata(L, (void *)(uintptr_t)waiting);
	lua_pushcclosure(L, call_wait, 1);
	lua_pushcfunction(L, is_stopped);
	if (lua_pcall(L, 3, 1, 0) != 0)
		exit(1);
	good = lua_toboolean(L, -1);
	lua_close(L);
	if (!good)
		printf("%s ended otherwise: %s\n", waiting->name, strerror(errno));
	return good ? argument : NULL;
}

static void nap_ms(long ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000 };

	nanosleep(&nap, NULL);
}

static bool prepare(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	epoll_fd = epoll_create1(0);
	return pipe(pipe_ends) == 0 && pipe(polled_ends) == 0 && pipe(epolled_ends) == 0 &&
	       pipe(vfork_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 &&
	       bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 1) == 0 &&
	       getsockname(listener, (struct sockaddr *)&address, &len) == 0 &&
	       epoll_ctl(epoll_fd, EPOLL_CTL_ADD, epolled_ends[0], &event) == 0;
}

/* Each by what it waits for. */
static bool end_waits(void)
{
	int client = socket(AF_INET, SOCK_STREAM, 0);

	stop = 1;
	return write(pipe_ends[1], "", 1) == 1 && write(polled_ends[1], "", 1) == 1 &&
	       write(epolled_ends[1], "", 1) == 1 && write(vfork_ends[1], "", 1) == 1 &&
	       send(sockets[1], "", 1, 0) == 1 &&
	       connect(client, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	       syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1 &&
	       kill(getpid(), SIGUSR2) == 0;
}

/* ---- Signals ---------------------------------------------------------------------------- */

static void ignore_number(int number)
{
	(void)number;
}

/* Something in each of the masks, and a queue of signals that nobody takes. */
static bool set_signals(void)
{
	const struct sigaction action = { .sa_handler = ignore_number };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	sigaddset(&set, SIGUSR2);
	signal(SIGPIPE, SIG_IGN);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
		return false;
	for (int i = 0; i < PENDING; i++)
		if (sigqueue(getpid(), SIGRTMIN + 3, (union sigval){ .sival_int = i }) != 0)
			return false;
	return true;
}

static int count_wrong_signals(void)
{
	const struct timespec at_once = { 0 };
	siginfo_t info;
	sigset_t set;
	int wrong = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	for (int i = 0; i < PENDING; i++)
		wrong += sigtimedwait(&set, &info, &at_once) != SIGRTMIN + 3 ||
			 info.si_value.sival_int != i || info.si_pid != getpid();
	return wrong + (sigtimedwait(&set, &info, &at_once) >= 0);
}

int main(int argc, char **argv)
{
	pthread_t threads[WAITS];
	int wrong = 0;

	if (argc != 2 || !prepare() || !set_signals())
		return 2;
	for (int i = 0; i < WAITS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)&waits[i]) != 0)
			return 2;
	nap_ms(BEGIN_MS);
	puts("ready");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		nap_ms(20);
	if (!end_waits())
		return 1;
	for (int i = 0; i < WAITS; i++) {
		void *good;

		pthread_join(threads[i], &good);
		wrong += !good;
	}
	printf("WAITS %d wrong %d signals %d wrong %d\n", WAITS, wrong, PENDING,
	       count_wrong_signals());
	return 0;
}
