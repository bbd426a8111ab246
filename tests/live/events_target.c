/* SPDX-License-Identifier: MIT */
/*
 * An event loop that would notice a profiler: it counts calls that end with EINTR though no handler
 * has run, signals that do not arrive, and how late its timeouts are.
 *
 * Usage: events_target idle|busy|storm SECONDS STOP
 *
 * Waits by turns in epoll_wait, poll, nanosleep, a futex and sigtimedwait, and runs Lua in between:
 * idle for some 20 us, busy for so long that it hardly waits. Meanwhile a child sends it 200
 * signals a second, each with its number. In a storm it is idle, the child sends 5,000, a timer of
 * its own interrupts it 10,000 times a second, and each turn starts a child, which sends SIGCHLD
 * when it ends. It prints "ready" first, and its counts when SECONDS are over or the file STOP
 * exists.
 */
#include <errno.h>
#include <lauxlib.h>
#include <linux/futex.h>
#include <lualib.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TIMEOUT_MS = 2,
	SIGNAL_PERIOD_NS = 5 * 1000 * 1000,
	STORM_SIGNAL_PERIOD_NS = 200 * 1000,
	/* Turns of the Lua function between two waits. */
	IDLE_TURNS = 1000,
	BUSY_TURNS = 100 * 1000,
	LATENESS_MAX = 1 << 20,
	STORM_PERIOD_US = 100,
};

static const char code[] = "jit.off()\n"
			   "function work(n) local x = 0.5 for i = 1, n do x = (x * x + i) % "
			   "1000.25 end return x end\n";

/* Numbers of signals come in their order, as real-time signals do. */
static volatile sig_atomic_t received, disordered;
static volatile int last_number;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	disordered += info->si_value.sival_int != last_number + 1;
	last_number = info->si_value.sival_int;
	received++;
}

/* ---- The storm -------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms, reaped;
static int begun;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

/* One signal may stand for several children. The sender is not reaped: it has not ended. */
static void on_child(int number)
{
	int kept = errno;

	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped++;
	errno = kept;
}

static void begin_storm(void)
{
	const struct itimerval often = { .it_interval = { .tv_usec = STORM_PERIOD_US },
					 .it_value = { .tv_usec = STORM_PERIOD_US } };
	const struct sigaction alarm_action = { .sa_handler = on_alarm };
	const struct sigaction child_action = { .sa_handler = on_child };

	sigaction(SIGALRM, &alarm_action, NULL);
	sigaction(SIGCHLD, &child_action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void begin_child(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	begun += child > 0;
}

static int handled(void)
{
	return received + alarms + reaped;
}

/* The last ones are still on their way. */
static void end_storm(void)
{
	const struct itimerval never = { 0 };
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };

	setitimer(ITIMER_REAL, &never, NULL);
	for (int ms = 0; reaped < begun && ms < 2000; ms++)
		nanosleep(&nap, NULL);
	signal(SIGCHLD, SIG_DFL);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- The sender ------------------------------------------------------------------------- */

/* Until a signal ends it. What the queue has no room for is sent again. */
static void send_signals(pid_t target, long period_ns, volatile int *sent, const volatile int *end)
{
	const struct timespec period = { .tv_nsec = period_ns };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!*end) {
		const union sigval value = { .sival_int = *sent + 1 };

		nanosleep(&period, NULL);
		if (sigqueue(target, SIGRTMIN + 1, value) == 0)
			++*sent;
	}
	_exit(0);
}

/* ---- The waits -------------------------------------------------------------------------- */

static int epoll_fd, pipe_ends[2];
static uint32_t futex_word;

static int wait_in_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, TIMEOUT_MS);
}

static int wait_in_poll(void)
{
	struct pollfd nothing = { .fd = pipe_ends[0], .events = POLLIN };

	return poll(&nothing, 1, TIMEOUT_MS);
}

static int wait_in_sleep(void)
{
	const struct timespec time = { .tv_nsec = TIMEOUT_MS * 1000 * 1000 };

	return nanosleep(&time, NULL);
}

static int wait_in_futex(void)
{
	const struct timespec time = { .tv_nsec = TIMEOUT_MS * 1000 * 1000 };

	return (int)syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
}

static int wait_for_signal(void)
{
	const struct timespec time = { .tv_nsec = TIMEOUT_MS * 1000 * 1000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &time);
}

/** What the loop has noticed. */
struct counts {
	unsigned calls, explained, unexplained, timeouts;
	uint32_t *lateness_us; /* of each call that timed out */
};

/* A call that ends with EINTR has been interrupted by a handler, which has run by then. */
static void wait_once(int (*wait)(void), struct counts *counts)
{
	int before = handled();
	uint64_t begin_ns = now_ns(), late_ns;
	bool interrupted;

	errno = 0;
	interrupted = wait() < 0 && errno == EINTR;
	late_ns = now_ns() - begin_ns;
	counts->calls++;
	if (interrupted && handled() != before)
		counts->explained++;
	else if (interrupted)
		counts->unexplained++;
	else if (late_ns >= TIMEOUT_MS * 1000000u && counts->timeouts < LATENESS_MAX)
		counts->lateness_us[counts->timeouts++] =
			(uint32_t)((late_ns - TIMEOUT_MS * 1000000u) / 1000);
}

static void work(lua_State *L, int turns)
{
	lua_getglobal(L, "work");
	lua_pushinteger(L, turns);
	if (lua_pcall(L, 1, 0, 0) != 0)
		exit(1);
}

static void run(lua_State *L, int turns, bool storm, uint64_t end_ns, const char *stop,
		struct counts *counts)
{
	static int (*const waits[])(void) = { wait_in_epoll, wait_in_poll, wait_in_sleep,
					      wait_in_futex, wait_for_signal };

	for (unsigned i = 0; now_ns() < end_ns; i++) {
		wait_once(waits[i % (sizeof(waits) / sizeof(waits[0]))], counts);
		work(L, turns);
		if (storm)
			begin_child();
		if (i % 16 == 0 && access(stop, F_OK) == 0)
			return;
	}
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct counts counts = { .lateness_us = calloc(LATENESS_MAX, sizeof(uint32_t)) };
	volatile int *shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const bool storm = argc > 1 && strcmp(argv[1], "storm") == 0;
	lua_State *L = luaL_newstate();
	sigset_t blocked;
	pid_t sender;

	if (argc != 4 || !L || shared == MAP_FAILED || !counts.lateness_us || pipe(pipe_ends) != 0)
		return 2;
	luaL_openlibs(L);
	if (luaL_loadbuffer(L, code, sizeof(code) - 1, "=events") != 0 || lua_pcall(L, 0, 0, 0))
		return 1;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sigaction(SIGRTMIN + 1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sender = fork();
	if (sender == 0)
		send_signals(getppid(), storm ? STORM_SIGNAL_PERIOD_NS : SIGNAL_PERIOD_NS,
			     &shared[0], &shared[1]);
	puts("ready");
	fflush(stdout);
	if (storm)
		begin_storm();
	run(L, strcmp(argv[1], "busy") == 0 ? BUSY_TURNS : IDLE_TURNS, storm,
	    now_ns() + strtoull(argv[2], NULL, 10) * 1000000000u, argv[3], &counts);
	if (storm)
		end_storm();
	shared[1] = 1;
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		continue; /* its last signal */
	qsort(counts.lateness_us, counts.timeouts, sizeof(*counts.lateness_us), by_number);
	printf("EVENTS calls %u explained %u unexplained %u sent %d received %d disordered %d "
	       "late_us %u alarms %d children %d reaped %d\n",
	       counts.calls, counts.explained, counts.unexplained, shared[0], (int)received,
	       (int)disordered, counts.timeouts ? counts.lateness_us[counts.timeouts / 2] : 0,
	       (int)alarms, begun, (int)reaped);
	lua_close(L);
	return 0;
}
