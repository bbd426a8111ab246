/* SPDX-License-Identifier: MIT */
/* When is the next tick, at a random time in its period? */
#include "daemon/tick_clock.h"
#include "attach/clock.h"

#include <errno.h>
#include <time.h>

enum {
	/* Longest sleep. If a signal arrives just before a sleep, the recorder notices it only
	 * afterwards. */
	CLOCK_SLEEP_NS = 200 * 1000 * 1000,
};

static void set_deadline(struct daemon_clock *clock)
{
	/* A uniform time in its period. If the target repeats something at nearly our period, the
	 * samples still hit all its phases. */
	clock->deadline_ns = clock->start_ns + clock->index * clock->period_ns +
			     clock_jitter(&clock->random) % clock->period_ns;
}

void daemon_clock_init(struct daemon_clock *clock, unsigned rate_hz, uint64_t start_ns,
		       uint64_t seed)
{
	*clock = (struct daemon_clock){ .start_ns = start_ns,
					.period_ns = 1000000000u / rate_hz,
					.random = seed | 1 };
	set_deadline(clock);
}

uint64_t daemon_clock_advance(struct daemon_clock *clock, uint64_t now_ns)
{
	uint64_t missed = 0, current = (now_ns - clock->start_ns) / clock->period_ns;

	clock->index++;
	if (current > clock->index) {
		missed = current - clock->index;
		clock->index = current;
	}
	set_deadline(clock);
	return missed;
}

int64_t daemon_clock_wait(const struct daemon_clock *clock, uint64_t until_ns)
{
	uint64_t now = clock_now_ns(), wake_ns = clock->deadline_ns;
	struct timespec wake;

	if (wake_ns > now + CLOCK_SLEEP_NS)
		wake_ns = now + CLOCK_SLEEP_NS;
	if (wake_ns > until_ns)
		wake_ns = until_ns;
	wake.tv_sec = (time_t)(wake_ns / 1000000000u);
	wake.tv_nsec = (long)(wake_ns % 1000000000u);
	if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR ||
	    wake_ns < clock->deadline_ns)
		return -1;
	now = clock_now_ns();
	return now > clock->deadline_ns ? (int64_t)(now - clock->deadline_ns) : 0;
}
