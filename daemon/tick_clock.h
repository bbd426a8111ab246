/* SPDX-License-Identifier: MIT */
/* Private to daemon: when is the next tick of a recording? */
#ifndef DAEMON_TICK_CLOCK_H
#define DAEMON_TICK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Clock with one tick at a random time in each period. Random times prevent beats with a timer or
 * loop of the target, while the mean rate stays exact. */
struct daemon_clock {
	uint64_t start_ns, period_ns, index;
	uint64_t deadline_ns;
	uint64_t random;
};

void daemon_clock_init(struct daemon_clock *clock, unsigned rate_hz, uint64_t start_ns,
		       uint64_t seed);

/**
 * Set the next deadline that is in the future.
 * @return Deadlines that have passed.
 */
uint64_t daemon_clock_advance(struct daemon_clock *clock, uint64_t now_ns);

/**
 * Sleep until the deadline, @p until_ns, a signal, or CLOCK_SLEEP_NS, whichever is first.
 * @return How late it is in nanoseconds, or -1 if the deadline is in the future.
 */
int64_t daemon_clock_wait(const struct daemon_clock *clock, uint64_t until_ns);

#endif
