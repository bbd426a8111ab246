/* SPDX-License-Identifier: MIT */
/* Threads under an interrupt that they have not answered, watched by a timer. */
#include "attach/thread/pending_stops.h"
#include "attach/process/process_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum {
	AWAITED_MAX = 64,
	/* A thread that stands is let go at the second look: after 5 to 10 ms. */
	LOOK_NS = 5 * 1000 * 1000,
};

/** One thread; written in the order in which a handler may interrupt it. */
struct awaited {
	volatile pid_t tid; /* 0: unused */
	volatile sig_atomic_t stands;
	volatile sig_atomic_t fate;
};

static struct awaited all[AWAITED_MAX];
static timer_t timer;
static bool has_timer;
static volatile sig_atomic_t is_armed;

int awaited_let_go(pid_t tid, int status)
{
	bool event = status >> 16 != 0; /* our interrupt or a group stop: nothing to deliver */
	long sig = WIFSTOPPED(status) && !event ? WSTOPSIG(status) : 0;

	return ptrace(PTRACE_DETACH, tid, NULL, (void *)sig) == 0 ? 0 : -1;
}

static bool is_stop(const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED;
}

/* What there is to wait for is looked at before it is taken: a stop under ptrace is reported by any
 * call, whatever it asks for. @return whether there is still something to wait for. */
static bool look_after(struct awaited *awaited)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t tid = awaited->tid;
	int status;

	if (!tid || awaited->fate != AWAITED_STILL)
		return false;
	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
		awaited->fate = AWAITED_ENDED; /* reaped already */
		return false;
	}
	if (info.si_pid == 0)
		return true;
	if (is_stop(&info) && !awaited->stands) {
		awaited->stands = 1;
		return true;
	}
	if (waitpid(tid, &status, __WALL | WNOHANG) != tid)
		return true;
	if (!WIFSTOPPED(status)) {
		awaited->fate = AWAITED_ENDED;
		return false;
	}
	registers_undo_stop(tid, status);
	/* One that cannot be let go was killed: the next look reaps it. */
	if (awaited_let_go(tid, status) == 0)
		awaited->fate = AWAITED_LET_GO;
	return awaited->fate == AWAITED_STILL;
}

static void set_timer(long interval_ns)
{
	const struct itimerspec often = { .it_interval.tv_nsec = interval_ns,
					  .it_value.tv_nsec = interval_ns };

	timer_settime(timer, 0, &often, NULL);
}

/* Also in the middle of a seize that waits for an exec: the kernel begins it anew afterwards. */
static void on_timer(int sig)
{
	int errnum = errno;
	bool any = false;

	(void)sig;
	for (int i = 0; i < AWAITED_MAX; i++)
		any |= look_after(&all[i]);
	is_armed = any;
	if (!any)
		set_timer(0);
	errno = errnum;
}

/* Not SIGALRM: an alarm that was set before we were executed is to end us. */
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

static struct awaited *find(pid_t tid)
{
	for (int i = 0; i < AWAITED_MAX; i++)
		if (all[i].tid == tid)
			return &all[i];
	return NULL;
}

void awaited_add(pid_t tid)
{
	struct awaited *awaited = find(tid);

	if (!awaited)
		awaited = find(0);
	if (!awaited || !make_timer())
		return;
	awaited->stands = 0;
	awaited->fate = AWAITED_STILL;
	awaited->tid = tid;
	/* A timer that runs goes on: begun anew by each thread it might never come to its end. */
	if (is_armed)
		return;
	is_armed = 1;
	set_timer(LOOK_NS);
}

enum awaited_fate awaited_look(pid_t tid)
{
	const struct awaited *awaited = find(tid);

	return awaited ? (enum awaited_fate)awaited->fate : AWAITED_STILL;
}

enum awaited_fate awaited_remove(pid_t tid)
{
	struct awaited *awaited = find(tid);

	if (!awaited)
		return AWAITED_STILL;
	awaited->tid = 0;
	return (enum awaited_fate)awaited->fate;
}
