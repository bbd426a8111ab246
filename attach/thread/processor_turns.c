/* SPDX-License-Identifier: MIT */
/*
 * A tick is one of the threads that run at that moment. One that waits for a processor answers an
 * interrupt only when it gets one, and then it stands where it was when it lost the last one: that
 * is at the end of a system call much more often than it spends time there. The kernel's scheduler
 * tells the two apart, by how long a thread has waited when it gets a processor: since before the
 * tick, or since we have taken it to look. For that we must know when it got one:
 *
 *   tick    interrupt   we sleep                    it stands   we wake
 *    |-----------|----------|----------------------------|---------|
 *         |<------------- it has waited this long ------>|<------->| we have waited this long
 *
 * Where we were late for the tick ourselves, and took the processor from the thread, that was at a
 * moment that the scheduler has chosen: such samples are left out, too.
 *
 * Source: Linux, Documentation/scheduler/sched-stats.rst (/proc/<pid>/schedstat);
 * kernel/sched/stats.h, sched_info_arrive(): a wait is counted when it ends.
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
	/* Between the caller's clock and the scheduler's, and what one costs. */
	SLACK_NS = 50 * 1000,
};

bool attach_thread_schedule(struct attach_thread *thread, struct attach_schedule *ret_schedule)
{
	char text[96], *at = text;
	ssize_t len;

	if (thread->schedule_fd == 0) {
		int fd = process_open(thread->tid, "schedstat", O_RDONLY);

		/* 0 is "not yet": where it is free we do without. */
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
	return ret_schedule->runs > 0; /* a kernel that does not count has zeros */
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

/* When it got its processor, if it did so while we slept; else 0. */
static uint64_t arrival_of(const struct attach_thread *thread)
{
	uint64_t waited_ns;

	if (!thread->woke_ns || !read_own_waits(&waited_ns))
		return 0;
	return thread->woke_ns - (waited_ns - thread->turn.own_waited_ns);
}

bool turn_has_waited(struct attach_thread *thread, uint64_t stood_ns, uint64_t *ret_waited_ns)
{
	struct attach_turn *turn = &thread->turn;
	uint64_t arrival_ns = turn->is_late ? arrival_of(thread) : stood_ns;
	struct attach_schedule after;

	*ret_waited_ns = 0;
	turn->ran_ns = 0;
	if (!turn->is_known || !attach_thread_schedule(thread, &after))
		return false;
	turn->ran_ns = after.ran_ns;
	*ret_waited_ns = after.waited_ns - turn->before.waited_ns;
	/* It has kept its processor, if it had one: in a long system call, for instance. */
	if (after.runs == turn->before.runs)
		return false;
	if (turn->is_ours && thread->is_tick_late)
		return true;
	return arrival_ns < thread->tick_ns + *ret_waited_ns - SLACK_NS;
}
