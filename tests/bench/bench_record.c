/* SPDX-License-Identifier: MIT */
#include "attach/clock.h"
#include "tests/bench/bench.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/tick_clock.h"

enum { RUNS_MAX = 16 };

/** Numbers of one run of ljrecord. */
struct run {
	double elapsed_s, cpu_s, rss_mib, first_ms;
	double ticks, late, missed, samples, frames, bytes;
};

static double number(struct json_object *root, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(root, key, &value) ? json_object_get_double(value) : 0;
}

static double cpu_seconds(const struct rusage *usage)
{
	return (double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static int run_ljrecord(pid_t pid, const char *capture, const char *rate, const char *seconds,
			const char *folder, struct run *ret_run)
{
	char pid_text[16], output[512], stats[512];
	struct json_object *root;
	struct rusage usage;
	int status;
	pid_t child;

	snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	snprintf(output, sizeof(output), "%s/bench.bin", folder);
	snprintf(stats, sizeof(stats), "%s/bench.json", folder);
	child = fork();
	if (child == 0) {
		execl(LJRECORD_PATH, "ljrecord", "-q", "--capture", capture, "-p", pid_text, "-F",
		      rate, "-d", seconds, "-o", output, "--stats", stats, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
		return -1;
	root = json_object_from_file(stats);
	if (!root)
		return -1;
	*ret_run = (struct run){
		.elapsed_s = number(root, "elapsed_ns") / 1e9,
		/* With its writer: both are children here, the writer by way of ljrecord's wait. */
		.cpu_s = cpu_seconds(&usage),
		.rss_mib = (double)usage.ru_maxrss / 1024,
		.first_ms = number(root, "first_sample_ns") / 1e6,
		.ticks = number(root, "ticks"),
		.late = number(root, "late_ticks"),
		.missed = number(root, "missed_ticks"),
		.samples = number(root, "samples"),
		.frames = number(root, "frames"),
		.bytes = number(root, "output_bytes"),
	};
	json_object_put(root);
	unlink(output);
	unlink(stats);
	return 0;
}

uint64_t bench_first_sample_ns(pid_t pid, const char *capture, size_t runs)
{
	char folder[] = BENCH_FOLDER;
	uint64_t took_ns[RUNS_MAX];
	bool sampled = true;

	bench_make_folder(folder);
	if (runs > RUNS_MAX)
		runs = RUNS_MAX;
	for (size_t i = 0; i < runs && sampled; i++) {
		uint64_t begin_ns = bench_now_ns();
		struct run run = { 0 };

		/* The whole life of the process, but for the time that it recorded on. */
		sampled = run_ljrecord(pid, capture, "1000", "0.1", folder, &run) == 0 &&
			  run.samples > 0;
		took_ns[i] = bench_now_ns() - begin_ns -
			     (uint64_t)(run.elapsed_s * 1e9 - run.first_ms * 1e6);
	}
	rmdir(folder);
	return sampled ? bench_quantile(took_ns, runs, 0.5) : UINT64_MAX;
}

double bench_recorded_cpu_ns(pid_t pid, const char *rate, const char *seconds)
{
	char folder[] = BENCH_FOLDER;
	struct run run = { 0 };
	int got;

	bench_make_folder(folder);
	got = run_ljrecord(pid, "stop", rate, seconds, folder, &run);
	rmdir(folder);
	return got == 0 && run.samples > 0 ? 1e9 * run.cpu_s / run.samples : 0;
}

/** A process that does nothing but wake up at a rate, by the recorder's own clock. */
struct waker {
	pid_t pid;
	int fd; /* its share of ticks on time comes here */
};

static double wake_up(unsigned rate, unsigned seconds)
{
	struct daemon_clock clock;
	uint64_t on_time = 0, ticks = 0;

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	daemon_clock_init(&clock, rate, clock_now_ns(), 1);
	while (clock.index < (uint64_t)rate * seconds) {
		int64_t late_ns = daemon_clock_wait(&clock, UINT64_MAX);

		if (late_ns < 0)
			continue;
		on_time += (uint64_t)late_ns <= clock.period_ns / 2;
		ticks += 1 + daemon_clock_advance(&clock, clock_now_ns());
	}
	return 100 * (double)on_time / (double)ticks;
}

static struct waker start_waker(unsigned rate, unsigned seconds)
{
	int fds[2];
	struct waker waker = { 0 };

	if (pipe(fds) != 0)
		exit(1);
	waker.pid = fork();
	if (waker.pid == 0) {
		double share = wake_up(rate, seconds);

		_exit(write(fds[1], &share, sizeof(share)) == sizeof(share) ? 0 : 1);
	}
	close(fds[1]);
	waker.fd = fds[0];
	return waker;
}

/* @return its processor time in seconds. */
static double end_waker(struct waker *waker, double *ret_on_time)
{
	struct rusage usage = { 0 };

	if (read(waker->fd, ret_on_time, sizeof(*ret_on_time)) != sizeof(*ret_on_time))
		*ret_on_time = 0;
	close(waker->fd);
	wait4(waker->pid, NULL, 0, &usage);
	return cpu_seconds(&usage);
}

/* On a virtual machine a mere wake-up costs, and wake-ups come late when the host runs another
 * guest: a process that only wakes up tells how much of the numbers is the machine's. */
static void bench_slow(pid_t pid, const char *folder, bool full)
{
	const unsigned seconds = full ? 20 : 5;
	struct waker waker = start_waker(99, seconds);
	double ignored, empty_s = end_waker(&waker, &ignored), own;
	struct run run;

	if (run_ljrecord(pid, "stop", "99", full ? "20" : "5", folder, &run) != 0) {
		bench_result("recording at 99 Hz", "measured", false, "ljrecord failed");
		return;
	}
	own = 100 * (run.cpu_s - empty_s) / run.elapsed_s;
	bench_result("processor time at 99 Hz, writer included", "< 1 % of a core",
		     run.cpu_s < 0.01 * run.elapsed_s,
		     "%.2f %% (%.2f %% for a process that only wakes as often; own %.2f %%)",
		     100 * run.cpu_s / run.elapsed_s, 100 * empty_s / seconds, own);
}

static void bench_fast(pid_t pid, const char *folder, bool full)
{
	const unsigned seconds = full ? 20 : 6;
	struct waker waker = start_waker(999, seconds);
	double on_time, empty_on_time, per_frame;
	struct run run, shorter;
	int failed = run_ljrecord(pid, "stop", "999", full ? "20" : "6", folder, &run);

	end_waker(&waker, &empty_on_time);
	if (failed || run_ljrecord(pid, "stop", "999", "2", folder, &shorter) != 0) {
		bench_result("recording at 999 Hz", "measured", false, "ljrecord failed");
		return;
	}
	bench_result("resident memory, larger of recorder and writer", "< 32 MiB", run.rss_mib < 32,
		     "%.1f MiB", run.rss_mib);
	on_time = 100 * (run.ticks - run.late) / (run.ticks + run.missed);
	bench_result("ticks on time at 999 Hz", ">= 99 %", on_time >= 99,
		     "%.2f %% of %.0f (%.2f %% for a process that only wakes, at the same time)",
		     on_time, run.ticks + run.missed, empty_on_time);
	/* The steady state: what the longer run has more than the shorter. */
	per_frame = (run.bytes - shorter.bytes) / (run.frames - shorter.frames);
	bench_result("bytes per frame in the steady state", "<= 9", per_frame <= 9,
		     "%.2f (%.1f frames a sample)", per_frame, run.frames / run.samples);
}

static void bench_start(pid_t pid, bool full)
{
	const char *what = "first sample after the start (whole process)";
	size_t runs = full ? 9 : 5;
	uint64_t median_ns = bench_first_sample_ns(pid, "stop", runs);

	if (median_ns != UINT64_MAX)
		bench_result(what, "<= 200 ms", median_ns <= 200000000u, "%.1f ms median of %zu",
			     (double)median_ns / 1e6, runs);
	else
		bench_result(what, "<= 200 ms", false, "no sample");
}

void bench_record(bool full)
{
	char folder[] = BENCH_FOLDER;
	pid_t pid = bench_start_target(600);

	bench_make_folder(folder);
	bench_slow(pid, folder, full);
	bench_fast(pid, folder, full);
	bench_start(pid, full);
	bench_end_target(pid);
	rmdir(folder);
}
