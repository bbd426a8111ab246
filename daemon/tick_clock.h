/* SPDX-License-Identifier: MIT */
/* Private to daemon: the ticks of a recording. */
#ifndef DAEMON_TICK_CLOCK_H
#define DAEMON_TICK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Ticks at absolute deadlines, one at a random moment of each period, so that the clock never beats
 * with a timer or a loop of the target while its mean rate is exact.
 */
struct daemon_clock {
	uint64_t start_ns, period_ns, index;
	uint64_t deadline_ns;
	uint64_t random;
};

void daemon_clock_init(struct daemon_clock *clock, unsigned rate_hz, uint64_t start_ns,
		       uint64_t seed);

/** Set the next deadline that is still to come. @return deadlines that were passed over. */
uint64_t daemon_clock_advance(struct daemon_clock *clock, uint64_t now_ns);

/** Sleep until the deadline, but not beyond @p until_ns, nor through a signal, nor long.
 *  @return how late it is in nanoseconds, or -1 if the deadline is still to come. */
int64_t daemon_clock_wait(const struct daemon_clock *clock, uint64_t until_ns);

#endif
