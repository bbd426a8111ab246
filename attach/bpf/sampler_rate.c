/* SPDX-License-Identifier: MIT */
/* How often does the kernel copy threads? Periods are random, and the kernel limits the rate.
 *
 * Source: perf_event_open(2), bpf(2); libbpf 1.1, libbpf.h; Linux v6.1, kernel/events/core.c
 * (__perf_event_account_interrupt), for the kernel's limit.
 */
#include "attach/bpf/sampler_internal.h"
#include "attach/clock.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum {
	/* A thread's period changes after this number of periods, by up to 1/JITTER. A program
	 * whose own period is near ours is then sampled at all its phases. */
	JITTER_PERIODS = 1000,
	JITTER = 128,
	/* Periods until the kernel's limit is read again. */
	LIMIT_PERIODS = 1000,
	/* A thread's first period is at least period / FIRST_PART, and at least FIRST_MIN_NS. */
	FIRST_PART = 64,
	FIRST_MIN_NS = 20 * 1000,
	/* The fastest kernel tick; each kernel tick has its share of the allowed samples. */
	KERNEL_HZ_MAX = 1000,
};

static const char limit_path[] = "/proc/sys/kernel/perf_event_max_sample_rate";

/* If an event uses up its share between two kernel ticks, the kernel pauses it until the next one.
 * The limit must therefore allow one sample more than the maximum. */
unsigned sampler_needed_limit(unsigned rate_hz)
{
	return rate_hz + rate_hz / JITTER + 2 * KERNEL_HZ_MAX;
}

/* The kernel lowers its limit by itself if interrupts take long. @return UINT_MAX if the limit is
 * unknown. */
unsigned sampler_read_limit(void)
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

static uint64_t next_period(struct attach_sampler *sampler)
{
	return sampler->period_ns - sampler->period_ns / JITTER +
	       clock_jitter(&sampler->random) % (2 * sampler->period_ns / JITTER + 1);
}

/* The first tick comes after a random part of the period; otherwise threads that live for less
 * would never have a tick. The timer repeats this part until its period changes. */
uint64_t sampler_first_period(struct attach_sampler *sampler)
{
	uint64_t ns = 1 + clock_jitter(&sampler->random) % sampler->period_ns,
		 least = sampler->period_ns / FIRST_PART;
	uint64_t allowed_ns = 1000000000u / (sampler->limit_hz - 2 * KERNEL_HZ_MAX);

	least = least < FIRST_MIN_NS ? FIRST_MIN_NS : least;
	least = least < allowed_ns ? allowed_ns : least;
	least = least > sampler->period_ns ? sampler->period_ns : least;
	return ns < least ? least : ns;
}

/* A change loses what the timer has counted since its last tick. Therefore a thread's own ticks
 * trigger the change, not the clock: with the clock, a thread that seldom runs would never have a
 * tick. @return How many ticks are lost: whole periods since the last tick, and one more with a
 * probability equal to the remaining fraction. */
uint32_t sampler_change_period(struct attach_sampler *sampler, struct sampler_slot *slot,
			       struct attach_sampler_plan *plan)
{
	uint64_t period_ns, passed_ns;

	if (!slot->is_first && ++slot->periods < JITTER_PERIODS)
		return 0;
	slot->periods = 0;
	period_ns = next_period(sampler);
	if (ioctl(slot->event.event_fd, PERF_EVENT_IOC_PERIOD, &period_ns) != 0)
		return 0;
	passed_ns = slot->is_first ? plan->passed_ns + plan->tick_ns / 2 : sampler->period_ns / 2;
	plan->tick_ns = 0;
	slot->is_first = false;
	return (uint32_t)(passed_ns / sampler->period_ns) +
	       (clock_jitter(&sampler->random) % sampler->period_ns <
		passed_ns % sampler->period_ns);
}

void sampler_watch_limit(struct attach_sampler *sampler)
{
	uint64_t time_ns = clock_now_ns();
	unsigned limit_hz;

	if (time_ns < sampler->limit_ns)
		return;
	sampler->limit_ns = time_ns + LIMIT_PERIODS * sampler->period_ns;
	limit_hz = sampler_read_limit();
	sampler->is_slowed = limit_hz < sampler_needed_limit(sampler->rate_hz);
	if (!sampler->is_slowed)
		sampler->limit_hz = limit_hz;
}

bool attach_sampler_is_slowed(const struct attach_sampler *sampler)
{
	return sampler->is_slowed;
}

void sampler_begin_pace(struct attach_sampler *sampler, unsigned rate_hz, unsigned limit_hz)
{
	sampler->rate_hz = rate_hz;
	sampler->limit_hz = limit_hz;
	sampler->period_ns = 1000000000u / rate_hz;
	sampler->random = clock_now_ns() | 1;
	sampler->limit_ns = clock_now_ns() + LIMIT_PERIODS * sampler->period_ns;
}
