/* SPDX-License-Identifier: MIT */
/* What time is it? */
#ifndef ATTACH_CLOCK_H
#define ATTACH_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * Read a clock, in nanoseconds. Never fails. Stopped window: allowed.
 * @param clock CLOCK_THREAD_CPUTIME_ID is the processor time that the calling thread has used.
 * Source: clock_gettime(2).
 */
uint64_t clock_read_ns(clockid_t clock);

/** Read CLOCK_MONOTONIC, in nanoseconds. */
uint64_t clock_now_ns(void);

/** Read CLOCK_MONOTONIC, in milliseconds. */
uint64_t clock_now_ms(void);

/**
 * Get the next pseudo-random number (xorshift64), for times that a target should not anticipate.
 * @param random State; not 0.
 */
uint64_t clock_jitter(uint64_t *random);

#endif
