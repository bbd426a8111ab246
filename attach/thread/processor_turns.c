/* SPDX-License-Identifier: MIT */
/*
 * Did a thread run at a tick, or did it wait for a processor?
 *
 * A tick samples threads that run at that moment. A thread that waits for a processor answers an
 * interrupt only when it gets one. It then stops at the location where it lost the last processor.
 * This is at the end of a system call much more often than the thread spends time there. The
 * scheduler's counters show how long the thread waited before it got a processor: since before the
 * tick, or only since we took its processor to sample it. To compare, we must know when it got the
 * processor:
 *
 *   tick    interrupt   we sleep                    it stops    we wake
 *    |-----------|----------|----------------------------|---------|
 *         |<------------- it has waited this long ------>|<------->| we have waited this long
 *
 * We may also be late for the tick ourselves, and take the processor from the thread. The scheduler
 * has then chosen the moment, so we leave out these samples, too.
 *
 * Source: Linux, Documentation/scheduler/sched-stats.rst (/proc/<pid>/schedstat);
 * kernel/sched/stats.h, sched_info_arrive(): the kernel counts a wait when it ends.
 */
#include "attach/thread/processor_turns.h"

#include "attach/process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Difference between the caller's clock and the scheduler's, and the cost of one read. */
	SLACK_NS = 50 * 1000,
};

bool attach_thread_schedule(struct attach_thread *thread, struct attach_schedule *ret_schedule)
{
	char text[96], *at = text;
	ssize_t len;

	if (thread->schedule_fd == 0) {
		int fd = process_open(thread->tid, "schedstat", O_RDONLY);

		/* 0 means "not opened yet", so we do not use descriptor 0. */
		thread->schedule_fd = fd > 0 ? fd : -1;
		if (fd == 0)
			close(fd);
	}
	if (thread->schedule_fd < 0)
		return false;
	do {
		len = pread(thread->schedule_fd, text, sizeof(text) - 1, 0);
	} while (len < 0 && errno == EINTR);
	if (len <= 0)
		return false;
	text[len] = '\0';
	ret_schedule->ran_ns = strtoull(at, &at, 10);
	ret_schedule->waited_ns = strtoull(at, &at, 10);
	ret_schedule->runs = strtoull(at, &at, 10);
	return ret_schedule->runs > 0; /* a kernel that does not count shows zeros */
}

void turn_end(struct attach_thread *thread)
{
	if (thread->schedule_fd > 0)
		close(thread->schedule_fd);
	thread->schedule_fd = 0;
}

static bool read_own_waits(uint64_t *ret_waited_ns)
{
	static struct attach_thread self;
	struct attach_schedule schedule;

	if (!self.tid)
		self.tid = gettid();
	if (!attach_thread_schedule(&self, &schedule))
		return false;
	*ret_waited_ns = schedule.waited_ns;
	return true;
}

bool turn_shares_processor(const struct attach_thread *thread)
{
	struct process_stat stat;

	return process_read_stat(thread->tid, &stat) == 0 && stat.processor == sched_getcpu();
}

void turn_begin(struct attach_thread *thread)
{
	struct attach_turn *turn = &thread->turn;

	turn->is_late = turn->is_ours = false;
	turn->is_known = attach_thread_schedule(thread, &turn->before);
}

void turn_postpone(struct attach_thread *thread)
{
	struct attach_turn *turn = &thread->turn;

	if (turn->is_late)
		return;
	turn->is_late = true;
	turn->is_ours = turn_shares_processor(thread);
	turn->is_known &= read_own_waits(&turn->own_waited_ns);
}

/* When the thread got its processor, if it did so while we slept; else 0. */
static uint64_t arrival_of(const struct attach_thread *thread)
{
	uint64_t waited_ns;

	if (!thread->woke_ns || !read_own_waits(&waited_ns))
		return 0;
	return thread->woke_ns - (waited_ns - thread->turn.own_waited_ns);
}

bool turn_has_waited(struct attach_thread *thread, uint64_t last_stop_ns, uint64_t *ret_waited_ns)
{
	struct attach_turn *turn = &thread->turn;
	uint64_t arrival_ns = turn->is_late ? arrival_of(thread) : last_stop_ns;
	struct attach_schedule after;

	*ret_waited_ns = 0;
	turn->ran_ns = 0;
	if (!turn->is_known || !attach_thread_schedule(thread, &after))
		return false;
	turn->ran_ns = after.ran_ns;
	*ret_waited_ns = after.waited_ns - turn->before.waited_ns;
	/* The thread has kept its processor, if it had one: for example, in a long system call. */
	if (after.runs == turn->before.runs)
		return false;
	if (turn->is_ours && thread->is_tick_late)
		return true;
	return arrival_ns < thread->tick_ns + *ret_waited_ns - SLACK_NS;
}
