/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Print one RESULT line for the tables. */
void bench_result(const char *what, const char *asked, bool ok, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** Start the target for some seconds; @return its pid once it runs Lua. */
pid_t bench_start_target(int seconds);
void bench_end_target(pid_t pid);

uint64_t bench_now_ns(void);
/** Sorts. @return the q-quantile. */
uint64_t bench_quantile(uint64_t *values, size_t count, double q);

/** Stops of ours against bare ones, taken in turn on the same thread. */
void bench_stop(int rounds);

/** Whole recordings: processor time, memory, punctuality, first sample, bytes. */
void bench_record(bool full);

#endif
