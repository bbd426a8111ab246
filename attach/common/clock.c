/* SPDX-License-Identifier: MIT */
/* How do we read the kernel's clocks as one number? */
#include "attach/clock.h"

uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000u;
}

uint64_t clock_jitter(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}
