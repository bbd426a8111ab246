/* SPDX-License-Identifier: MIT */
/*
 * How does the freezer stop a process's threads, and let them go in time?
 *
 * The freezer is a process that does nothing else. Many things may delay its parent: a read that
 * waits for a lock of the target or for swapped pages, an exec in the target that waits until we
 * reap, SIGSTOP, its death. None of them keeps the kernel from ending the freezer when its timer
 * expires. When a tracer ends, all its threads run again. Those in a signal-delivery stop get their
 * signal, and those in a group stop stay in it. The freezer has its own process group, so Ctrl-Z in
 * the terminal does not stop it.
 * Source: Linux 6.1, kernel/ptrace.c, exit_ptrace(), __ptrace_unlink(); ptrace(2), "Death under
 * ptrace"; prctl(2), PR_SET_PDEATHSIG.
 */
#include "attach/clock.h"
#include "attach/freeze/freeze_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/process/process_internal.h"
#include "attach/thread/pending_stops.h"
#include "attach/thread/thread_internal.h"

enum {
	/* Divisor of the pause. A thread that does not stop in this part of it continues to run. */
	STOP_PART = 4,
	/* A thread may wait long for a processor, and our interrupt does not lengthen this wait.
	 * Until one thread stops, nothing is frozen. */
	STOP_PATIENCE_MS = 2000,
	/* Polls before we sleep between polls. On a machine with one processor the threads need
	 * ours. */
	STOP_POLLS = 200,
	STOP_NAP_NS = 50 * 1000,
	/* The next round finds threads that start during this one. */
	ROUNDS = 8,
	/* Interval at which we probe for waking threads during the copy: short, so that they do
	 * little. */
	WATCH_NS = 100 * 1000,
};

/** A freeze, as the freezer sees it. */
struct freezer {
	struct attach_threads *threads;
	struct freeze_shared *shared;
	uint64_t max_pause_ns;
	uint64_t polled_ns; /* time of the last poll of pending stops */
	uint64_t seize_ns;  /* time of the first seize; 0: none yet */
	int end;
};

static long trace(int request, pid_t tid)
{
	return ptrace((enum __ptrace_request)request, tid, NULL, NULL);
}

/* ---- Probing ---------------------------------------------------------------------------- */

/* @return NULL if there are too many. */
static struct freeze_thread *add_thread(struct freeze_shared *shared, struct attach_thread *entry)
{
	struct freeze_thread *thread = entry->data;

	if (thread)
		return thread;
	if (shared->count == FREEZE_THREADS_MAX) {
		shared->is_incomplete = shared->is_full = true;
		return NULL;
	}
	thread = &shared->threads[shared->count++];
	*thread = (struct freeze_thread){ .seen = { .tid = entry->tid, .syscall = -1 } };
	entry->data = thread;
	return thread;
}

/*
 * A thread that sleeps outside a system call, as in a page fault or a group stop, has no number.
 * Source: proc(5), /proc/PID/syscall.
 */
static int64_t call_of(const struct attach_thread *entry)
{
	char text[24];
	ssize_t len = pread(entry->syscall_fd, text, sizeof(text) - 1, 0);

	if (len <= 0 || text[0] < '0' || text[0] > '9')
		return -1;
	text[len] = '\0';
	return strtoll(text, NULL, 10);
}

/* ---- Stopping --------------------------------------------------------------------------- */

/* SIGALRM ends us, because nothing handles it. */
static void set_timer(uint64_t after_ns)
{
	struct itimerval timer = { 0 };

	timer.it_value.tv_sec = (time_t)(after_ns / 1000000000u);
	timer.it_value.tv_usec = (suseconds_t)(after_ns / 1000 % 1000000);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Call before the first interrupt. */
static void begin_stops(struct freezer *freezer)
{
	if (freezer->seize_ns)
		return;
	freezer->seize_ns = freezer->polled_ns = clock_now_ns();
	set_timer(freezer->max_pause_ns + (uint64_t)STOP_PATIENCE_MS * 1000000u);
}

/*
 * The pause begins when the first thread stops.
 * @param before_ns A time at which it had not.
 */
static void begin_pause(struct freezer *freezer, uint64_t before_ns)
{
	if (freezer->shared->begin_ns)
		return;
	set_timer(freezer->max_pause_ns);
	freezer->shared->begin_ns = before_ns;
}

/* Another recorder may trace the thread for a moment, so we try again later. */
static void stop_thread(struct freezer *freezer, struct freeze_thread *thread)
{
	pid_t tid = thread->seen.tid;

	begin_stops(freezer);
	if (trace(PTRACE_SEIZE, tid) != 0) {
		thread->is_ended = errno == ESRCH;
		thread->is_refused = !thread->is_ended;
		if (thread->is_refused && freezer->shared->why.kind == FAILURE_NONE)
			failure_set_errno(&freezer->shared->why, errno, tid, "trace the thread");
		return;
	}
	thread->is_refused = false;
	thread->is_seized = true;
	trace(PTRACE_INTERRUPT, tid);
}

static void probe(struct freezer *freezer, struct attach_thread *entry)
{
	struct freeze_thread *thread = add_thread(freezer->shared, entry);
	struct attach_frozen_thread *seen;
	uint64_t runs;

	if (!thread || thread->is_ended || thread->is_seized)
		return;
	seen = &thread->seen;
	/* Count before the probe: if the thread falls asleep in between, the count stays valid. */
	runs = seen->is_asleep ? 0 : process_count_runs(seen->tid);
	switch (attach_thread_state(entry, &seen->sp, &seen->pc)) {
	case ATTACH_EXITED:
		thread->is_ended = true;
		thread->is_refused = false;
		return;
	case ATTACH_BLOCKED:
		if (!seen->is_asleep) {
			thread->runs = runs;
			seen->syscall = call_of(entry);
		}
		seen->is_asleep = true;
		return;
	case ATTACH_RUNNING:
		break;
	}
	seen->woke |= seen->is_asleep;
	seen->is_asleep = false;
	seen->syscall = -1;
	stop_thread(freezer, thread);
}

static void probe_all(struct freezer *freezer)
{
	for (size_t i = 0; i < attach_threads_count(freezer->threads); i++)
		probe(freezer, attach_threads_get(freezer->threads, i));
}

/* Handle the stop or end of a thread. */
static void take_stop(struct freeze_thread *thread)
{
	struct attach_frozen_thread *seen = &thread->seen;
	struct failure why;
	pid_t got = waitpid(seen->tid, &thread->status, __WALL | WNOHANG);

	if (got == 0)
		return;
	seen->is_stopped = got > 0 && WIFSTOPPED(thread->status);
	thread->is_ended = !seen->is_stopped;
	if (!seen->is_stopped)
		return;
	/* A thread that was killed while stopped: our exit lets it go. */
	if (attach_read_registers(seen->tid, &seen->registers, &why) != 0) {
		seen->is_stopped = false;
		thread->is_ended = true;
		return;
	}
	registers_restart_wait(seen->tid, thread->status, &seen->registers, false);
	seen->sp = attach_sp(&seen->registers);
	seen->pc = attach_pc(&seen->registers);
}

/*
 * Handle the threads that have answered.
 * @return whether some have not.
 */
static bool take_stops(struct freezer *freezer)
{
	uint64_t now_ns = clock_now_ns();
	bool any = false;

	for (size_t i = 0; i < freezer->shared->count; i++) {
		struct freeze_thread *thread = &freezer->shared->threads[i];

		if (thread->is_seized && !thread->seen.is_stopped && !thread->is_ended)
			take_stop(thread);
		if (thread->seen.is_stopped)
			begin_pause(freezer, freezer->polled_ns);
		any |= thread->is_refused ||
		       (thread->is_seized && !thread->seen.is_stopped && !thread->is_ended);
	}
	freezer->polled_ns = now_ns;
	return any;
}

static bool is_late(const struct freezer *freezer)
{
	uint64_t now_ns = clock_now_ns();

	if (freezer->shared->begin_ns)
		return now_ns - freezer->shared->begin_ns >= freezer->max_pause_ns / STOP_PART;
	return freezer->seize_ns &&
	       now_ns - freezer->seize_ns >= (uint64_t)STOP_PATIENCE_MS * 1000000u;
}

static void stop_all(struct freezer *freezer)
{
	const struct timespec nap = { .tv_nsec = STOP_NAP_NS };
	struct failure why;

	for (unsigned round = 0; round < ROUNDS && !is_late(freezer); round++) {
		probe_all(freezer);
		for (unsigned polls = 0; take_stops(freezer) && !is_late(freezer); polls++) {
			if (polls > STOP_POLLS)
				nanosleep(&nap, NULL);
			probe_all(freezer);
		}
		if (!attach_threads_changed(freezer->threads) ||
		    attach_threads_refresh(freezer->threads, &why) != 0)
			return;
	}
}

/* ---- Frozen ----------------------------------------------------------------------------- */

static void say(const struct freezer *freezer, char word)
{
	if (write(freezer->end, &word, 1) != 1)
		_exit(1); /* the parent has ended */
}

/* Stop threads that wake, until the parent has made the copy. */
static void watch(struct freezer *freezer)
{
	struct pollfd poll_end = { .fd = freezer->end, .events = POLLIN };
	const struct timespec nap = { .tv_nsec = WATCH_NS };

	while (ppoll(&poll_end, 1, &nap, NULL) == 0) {
		probe_all(freezer);
		take_stops(freezer);
	}
}

/* A thread that slept all the time has changed nothing. */
static void note_woken(struct freezer *freezer)
{
	probe_all(freezer);
	for (size_t i = 0; i < freezer->shared->count; i++) {
		struct freeze_thread *thread = &freezer->shared->threads[i];

		if (thread->seen.is_asleep && !thread->is_ended)
			thread->seen.woke |= process_count_runs(thread->seen.tid) != thread->runs ||
					     !thread->runs;
	}
	freezer->shared->is_incomplete |= attach_threads_changed(freezer->threads);
}

/* Our exit lets the other threads go: those not stopped yet, and those killed. */
static void let_go(struct freezer *freezer)
{
	for (size_t i = 0; i < freezer->shared->count; i++) {
		struct freeze_thread *thread = &freezer->shared->threads[i];

		if (thread->seen.is_stopped)
			pending_stop_let_go(thread->seen.tid, thread->status);
	}
	freezer->shared->release_ns = clock_now_ns();
}

static void prepare(pid_t parent)
{
	sigset_t alarm_signal;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&alarm_signal);
	sigaddset(&alarm_signal, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarm_signal, NULL);
}

_Noreturn void freezer_run(struct attach_threads *threads, pid_t parent, uint64_t max_pause_ns,
			   int end, struct freeze_shared *shared)
{
	struct freezer freezer = {
		.threads = threads, .shared = shared, .max_pause_ns = max_pause_ns, .end = end
	};

	prepare(parent);
	stop_all(&freezer);
	say(&freezer, FREEZE_STOPPED);
	watch(&freezer);
	note_woken(&freezer);
	let_go(&freezer);
	say(&freezer, FREEZE_DONE);
	_exit(0);
}
