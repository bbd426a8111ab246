/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/decode/target.h"

/** Print one RESULT line for the tables. */
void bench_result(const char *what, const char *asked, bool ok, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** The same for what this machine cannot measure, with the reason. */
void bench_skip(const char *what, const char *asked, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Start the target for some seconds; @return its pid once it runs Lua. */
pid_t bench_start_target(int seconds);
/** The same for another program, which takes the seconds as its argument. */
pid_t bench_start_program(const char *path, int seconds);
void bench_end_target(pid_t pid);

/** The least that any profiler of this kind does to a thread. @return How long it took, 0 where it
 *  could not be done. */
uint64_t bench_bare_stop(pid_t tid);

/** Processors that the target and we had before bench_part(). */
struct bench_parted {
	pid_t pid;
	cpu_set_t allowed;
};

/** The target on one processor and we on another, until bench_join(): where the kernel puts both on
 *  one, a stop's time is that of its choice which of them runs first.
 *  @return Whether there are two. */
bool bench_part(pid_t pid, struct bench_parted *ret_parted);
void bench_join(const struct bench_parted *parted);

/** Look into a process as the recorder does at first: its maps, threads and interpreters. */
int bench_open_target(pid_t pid, struct daemon_target **ret_target, struct failure *why);
void bench_close_target(struct daemon_target *target);

/** Takes single samples of a process's first thread. */
struct bench_sampler {
	struct daemon_target *target;
	struct attach_thread *thread;
	struct attach_image *image, *after;
	struct luastate_prediction prediction;
};

struct bench_sample {
	uint64_t stopped_ns; /**< The stop; held_ns: part of it from when the thread stood. */
	uint64_t held_ns;
	uint64_t decode_ns; /**< What follows the stop. */
	uint64_t cpu_ns;    /**< Processor time of both. */
	unsigned rounds;    /**< Of the planner; the last one asks for nothing. */
	size_t frames;
	bool full;
	enum format_compiled compiled;
	uint32_t trace;
};

int bench_open_sampler(pid_t pid, struct bench_sampler *ret_sampler, struct failure *why);
void bench_close_sampler(struct bench_sampler *sampler);

/** @return 0, or -1 where there is none: the thread was not to be stopped now. */
int bench_take_sample(struct bench_sampler *sampler, struct bench_sample *ret_sample);

/** Make a folder for what is recorded. @param folder Holds BENCH_FOLDER, and then its name. */
#define BENCH_FOLDER "/tmp/ljprof-bench-XXXXXX"
void bench_make_folder(char *folder);

uint64_t bench_now_ns(void);
/** Sorts. @return the q-quantile. */
uint64_t bench_quantile(uint64_t *values, size_t count, double q);

/** Stops of ours against bare ones, taken in turn on the same thread, from another processor than
 * that thread's. */
void bench_stop(int rounds);

/** How long it takes from the start of ljrecord to its first sample, its end included: the median
 * of at most 16 runs, or UINT64_MAX if one has no sample. @param capture As its option has it. */
uint64_t bench_first_sample_ns(pid_t pid, const char *capture, size_t runs);

/** Samples of processes with few and with many traces; where not ljrecord takes them, from another
 * processor than theirs. */
void bench_traces(bool full);

/** Processor time of ljrecord and its writer for each sample, 0 if there is none. */
double bench_recorded_cpu_ns(pid_t pid, const char *rate, const char *seconds);

/** Processor time of ljtop. */
void bench_top(bool full);
void bench_top_slowdown(bool full);

/** How much slower programs become, beside other profilers. */
void bench_slowdown(bool full);

/** The processor time that recording takes, to perf's, in rounds. */
void bench_use(bool full);

/** Finding a VM in a process with a large heap. */
void bench_find(void);
/** Memory that programs may still take. */
unsigned long bench_available_mib(void);

/** What samples cost by the size of the process, in six respects. */
void bench_growth(bool full);

/** Whole recordings: processor time, memory, punctuality, first sample, bytes. */
void bench_record(bool full);

#endif
