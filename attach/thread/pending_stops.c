/* SPDX-License-Identifier: MIT */
/* How does a timer watch threads that have not answered an interrupt? */
#include "attach/thread/pending_stops.h"
#include "attach/process/process_internal.h"
#include "attach/thread/thread_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum {
	PENDING_STOP_MAX = 64,
	/* The second poll lets a stopped thread go: after 5 to 10 ms. */
	POLL_NS = 5 * 1000 * 1000,
};

/** One thread. We write its fields in an order that the handler may interrupt. */
struct pending_stop {
	volatile pid_t tid; /* 0: unused */
	volatile sig_atomic_t is_stopped;
	volatile sig_atomic_t fate;
};

static struct pending_stop all[PENDING_STOP_MAX];
static timer_t timer;
static bool has_timer;
static volatile sig_atomic_t is_armed;

int pending_stop_let_go(pid_t tid, int status)
{
	bool event = status >> 16 != 0; /* our interrupt or a group stop: no signal to deliver */
	long sig = WIFSTOPPED(status) && !event ? WSTOPSIG(status) : 0;

	return ptrace(PTRACE_DETACH, tid, NULL, (void *)sig) == 0 ? 0 : -1;
}

static bool is_stop(const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED;
}

/*
 * Peek at the event with WNOWAIT before waitpid() consumes it: each call reports a stop under
 * ptrace, whatever its options.
 * @return whether the thread still has a pending stop.
 */
static bool poll_stop(struct pending_stop *pending_stop)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t tid = pending_stop->tid;
	int status;

	if (!tid || pending_stop->fate != PENDING_STOP_STILL)
		return false;
	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
		pending_stop->fate = PENDING_STOP_ENDED; /* already reaped */
		return false;
	}
	if (info.si_pid == 0)
		return true;
	if (is_stop(&info) && !pending_stop->is_stopped) {
		pending_stop->is_stopped = 1;
		return true;
	}
	if (waitpid(tid, &status, __WALL | WNOHANG) != tid)
		return true;
	if (!WIFSTOPPED(status)) {
		pending_stop->fate = PENDING_STOP_ENDED;
		return false;
	}
	registers_undo_stop(tid, status);
	/* If this fails, the thread was killed, and the next poll reaps it. */
	if (pending_stop_let_go(tid, status) == 0)
		pending_stop->fate = PENDING_STOP_LET_GO;
	return pending_stop->fate == PENDING_STOP_STILL;
}

static void set_timer(long interval_ns)
{
	const struct itimerspec often = { .it_interval.tv_nsec = interval_ns,
					  .it_value.tv_nsec = interval_ns };

	timer_settime(timer, 0, &often, NULL);
}

/* The handler may interrupt a seize that waits for an exec. The kernel then restarts the seize. */
static void on_timer(int sig)
{
	int errnum = errno;
	bool any = false;

	(void)sig;
	for (int i = 0; i < PENDING_STOP_MAX; i++)
		any |= poll_stop(&all[i]);
	is_armed = any;
	if (!any)
		set_timer(0);
	errno = errnum;
}

/* Not SIGALRM: an alarm that was set before our exec must still end us. */
static bool make_timer(void)
{
	const struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	sigset_t own;

	if (has_timer)
		return true;
	sigemptyset(&own);
	sigaddset(&own, SIGRTMIN);
	has_timer = sigaction(SIGRTMIN, &action, NULL) == 0 &&
		    timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
		    pthread_sigmask(SIG_UNBLOCK, &own, NULL) == 0;
	return has_timer;
}

static struct pending_stop *find(pid_t tid)
{
	for (int i = 0; i < PENDING_STOP_MAX; i++)
		if (all[i].tid == tid)
			return &all[i];
	return NULL;
}

void pending_stops_add(pid_t tid)
{
	struct pending_stop *pending_stop = find(tid);

	if (!pending_stop)
		pending_stop = find(0);
	if (!pending_stop || !make_timer())
		return;
	pending_stop->is_stopped = 0;
	pending_stop->fate = PENDING_STOP_STILL;
	pending_stop->tid = tid;
	/* If each new thread restarted a running timer, it might never expire. */
	if (is_armed)
		return;
	is_armed = 1;
	set_timer(POLL_NS);
}

enum pending_stop_fate pending_stop_poll(pid_t tid)
{
	const struct pending_stop *pending_stop = find(tid);

	return pending_stop ? (enum pending_stop_fate)pending_stop->fate : PENDING_STOP_STILL;
}

enum pending_stop_fate pending_stops_remove(pid_t tid)
{
	struct pending_stop *pending_stop = find(tid);

	if (!pending_stop)
		return PENDING_STOP_STILL;
	pending_stop->tid = 0;
	return (enum pending_stop_fate)pending_stop->fate;
}
