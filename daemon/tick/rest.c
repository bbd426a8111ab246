/* SPDX-License-Identifier: MIT */
/*
 * Which outcome have ticks without a copy?
 *
 * Copies follow a thread's processor time. At all other ticks of the clock the thread slept or
 * waited for a processor. The scheduler reports the length of a wait when the wait ends.
 *
 * Source: Linux, Documentation/scheduler/sched-stats.rst (/proc/<pid>/schedstat);
 * kernel/sched/stats.h, sched_info_arrive().
 */
#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/tick/tick.h"

enum {
	/* Between polls of a thread without copies: most threads sleep. */
	POLL_NS = 1000 * 1000 * 1000,
	/* Most ticks of one wait, and of waits that are not reported yet. */
	WAIT_TICKS_MAX = 1024 * 16,
};

static int64_t period_of(const struct recorder_target *of)
{
	return 1000000000 / (int64_t)of->recorder->options->rate_hz;
}

/* Add the thread's wait since the last poll. @return Whether it ran since then; true if the kernel
 * does not say. */
static bool note_waits(const struct recorder_target *of, struct attach_thread *thread,
		       struct sampled_copies *copies)
{
	struct attach_schedule now, before = copies->schedule;
	int64_t most_ns = WAIT_TICKS_MAX * period_of(of);

	if (!attach_thread_schedule(thread, &now))
		return true;
	copies->schedule = now;
	/* A decrease means that another thread now has this tid. */
	if (!before.runs || now.runs < before.runs || now.waited_ns < before.waited_ns)
		return true;
	if (now.ran_ns > before.ran_ns)
		of->recorder->stats->ran_ns += now.ran_ns - before.ran_ns;
	copies->waited_ns += (int64_t)(now.waited_ns - before.waited_ns);
	if (copies->waited_ns > most_ns)
		copies->waited_ns = most_ns;
	return now.runs != before.runs;
}

static void tell(struct recorder_target *of, struct sampled_thread *data, int64_t ticks,
		 enum daemon_outcome outcome)
{
	if (ticks <= 0)
		return;
	data->copies.rest -= ticks;
	data->pending += (uint32_t)ticks;
	of->recorder->stats->thread_ticks += (uint64_t)ticks;
	sampled_report(of, data, outcome);
}

/* Report the ticks of waits that have ended. */
static void report_waits(struct recorder_target *of, struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;
	int64_t ticks = copies->waited_ns / period_of(of);

	ticks = ticks < copies->rest ? ticks : copies->rest;
	copies->waited_ns -= ticks * period_of(of);
	tell(of, data, ticks, DAEMON_UNSCHEDULED);
}

/* Whether the thread is still waiting: the ticks of a wait are reported when it ends. */
static bool is_waiting(struct attach_thread *thread, const struct sampled_copies *copies, bool ran)
{
	return !ran && copies->rest < WAIT_TICKS_MAX &&
	       attach_thread_state(thread, NULL, NULL) == ATTACH_RUNNING;
}

void rest_begin(struct attach_thread *thread, struct sampled_copies *copies)
{
	if (!attach_thread_schedule(thread, &copies->schedule))
		copies->schedule.runs = 0;
	copies->poll_ns = clock_now_ns() + POLL_NS;
}

void rest_report(struct recorder_target *of, struct attach_thread *thread,
		 struct sampled_thread *data, bool has_copies)
{
	struct sampled_copies *copies = &data->copies;
	uint64_t now_ns = clock_now_ns();
	int64_t deferred = copies->deferred;
	bool ran;

	if (copies->rest <= 0 || (!has_copies && now_ns < copies->poll_ns))
		return;
	copies->poll_ns = now_ns + POLL_NS;
	ran = note_waits(of, thread, copies);
	if (!has_copies && is_waiting(thread, copies, ran))
		return;
	report_waits(of, data);
	/* It may be waiting again. The ticks of that wait, and the last ticks, are reported
	 * later. */
	deferred = has_copies && deferred < copies->rest ? deferred : copies->rest;
	tell(of, data, deferred, DAEMON_IDLE);
	copies->deferred = copies->rest;
}

void rest_end(struct recorder_target *of, struct attach_thread *thread, struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;

	if (copies->rest <= 0)
		return;
	if (thread && is_waiting(thread, copies, note_waits(of, thread, copies))) {
		tell(of, data, copies->rest, DAEMON_UNSCHEDULED);
		return;
	}
	report_waits(of, data);
	tell(of, data, copies->rest, DAEMON_IDLE);
}
