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
unsigned sampler_needed_limit(unsigned rate_hz)
{
	return rate_hz + rate_hz / JITTER + 2 * KERNEL_HZ_MAX;
}

/* The kernel lowers its limit by itself where interrupts take long. @return UINT_MAX if it is not
 * known. */
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

/* The first tick comes after a random part of the period, or threads that live for less would never
 * have one. The timer goes on with that part until it is changed. */
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

/* What the timer has counted since its last tick is lost by a change: so it is changed by a
 * thread's own ticks, not by the clock, as one that seldom runs would never have one. @return The
 * ticks that are lost: the last one is a while ago, and each is as likely as so much of it has
 * passed. */
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
