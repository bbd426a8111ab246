/* SPDX-License-Identifier: MIT */
/* How often the kernel copies threads: random periods, and the limit that the kernel sets to them.
 *
 * Source: perf_event_open(2), bpf(2); libbpf 1.1, libbpf.h; Linux v6.1, kernel/events/core.c
 * (__perf_event_account_interrupt), for how often the kernel lets it.
 */
#include "attach/bpf/sampler_internal.h"
#include "attach/clock.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum {
	/* A thread's period is changed after that many, by up to a part in JITTER: a program with a
	 * period near ours is seen at all its phases. */
	JITTER_PERIODS = 1000,
	JITTER = 128,
	/* The kernel's limit is read again after that many. */
	LIMIT_PERIODS = 1000,
	/* A thread's first period may be as short as a part in this, and no shorter than that. */
	FIRST_PART = 64,
	FIRST_MIN_NS = 20 * 1000,
	/* The kernel's own ticks, of which each has its share of the samples that it allows. */
	KERNEL_HZ_MAX = 1000,
};

static const char limit_path[] = "/proc/sys/kernel/perf_event_max_sample_rate";

/* An event with as many samples between two of the kernel's ticks as it allows rests until the next
 * one: there has to be room for one more than the most that there can be. */
unsigned tap_needed_limit(unsigned rate_hz)
{
	return rate_hz + rate_hz / JITTER + 2 * KERNEL_HZ_MAX;
}

/* The kernel lowers its limit by itself where interrupts take long. @return UINT_MAX if it is not
 * known. */
unsigned tap_read_limit(void)
{
	FILE *file = fopen(limit_path, "re");
	unsigned limit;

	if (!file)
		return UINT_MAX;
	if (fscanf(file, "%u", &limit) != 1)
		limit = UINT_MAX;
	fclose(file);
	return limit;
}

static uint64_t next_random(struct attach_tap *tap)
{
	tap->random ^= tap->random << 13;
	tap->random ^= tap->random >> 7;
	tap->random ^= tap->random << 17;
	return tap->random;
}

static uint64_t next_period(struct attach_tap *tap)
{
	return tap->period_ns - tap->period_ns / JITTER +
	       next_random(tap) % (2 * tap->period_ns / JITTER + 1);
}

/* The first tick comes after a random part of the period, or threads that live for less would never
 * have one. The timer goes on with that part until it is changed. */
uint64_t tap_first_period(struct attach_tap *tap)
{
	uint64_t ns = 1 + next_random(tap) % tap->period_ns, least = tap->period_ns / FIRST_PART;
	uint64_t allowed_ns = 1000000000u / (tap->limit_hz - 2 * KERNEL_HZ_MAX);

	least = least < FIRST_MIN_NS ? FIRST_MIN_NS : least;
	least = least < allowed_ns ? allowed_ns : least;
	least = least > tap->period_ns ? tap->period_ns : least;
	return ns < least ? least : ns;
}

/* What the timer has counted since its last tick is lost by a change: so it is changed by a
 * thread's own ticks, not by the clock, as one that seldom runs would never have one. @return The
 * ticks that are lost: the last one is a while ago, and each is as likely as so much of it has
 * passed. */
uint32_t tap_change_period(struct attach_tap *tap, struct tap_slot *slot,
			   struct attach_tap_plan *plan)
{
	uint64_t period_ns, passed_ns;

	if (!slot->is_first && ++slot->periods < JITTER_PERIODS)
		return 0;
	slot->periods = 0;
	period_ns = next_period(tap);
	if (ioctl(slot->event.event_fd, PERF_EVENT_IOC_PERIOD, &period_ns) != 0)
		return 0;
	passed_ns = slot->is_first ? plan->passed_ns + plan->tick_ns / 2 : tap->period_ns / 2;
	plan->tick_ns = 0;
	slot->is_first = false;
	return (uint32_t)(passed_ns / tap->period_ns) +
	       (next_random(tap) % tap->period_ns < passed_ns % tap->period_ns);
}

void tap_watch_limit(struct attach_tap *tap)
{
	uint64_t time_ns = clock_now_ns();
	unsigned limit_hz;

	if (time_ns < tap->limit_ns)
		return;
	tap->limit_ns = time_ns + LIMIT_PERIODS * tap->period_ns;
	limit_hz = tap_read_limit();
	tap->is_slowed = limit_hz < tap_needed_limit(tap->rate_hz);
	if (!tap->is_slowed)
		tap->limit_hz = limit_hz;
}

bool attach_tap_is_slowed(const struct attach_tap *tap)
{
	return tap->is_slowed;
}

void tap_begin_pace(struct attach_tap *tap, unsigned rate_hz, unsigned limit_hz)
{
	tap->rate_hz = rate_hz;
	tap->limit_hz = limit_hz;
	tap->period_ns = 1000000000u / rate_hz;
	tap->random = clock_now_ns() | 1;
	tap->limit_ns = clock_now_ns() + LIMIT_PERIODS * tap->period_ns;
}
