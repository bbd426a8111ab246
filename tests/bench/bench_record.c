/* SPDX-License-Identifier: MIT */
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

#include "daemon/clock.h"

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

static int run_ljrecord(pid_t pid, const char *rate, const char *seconds, const char *folder,
			struct run *ret_run)
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
		execl(LJRECORD_PATH, "ljrecord", "-q", "-p", pid_text, "-F", rate, "-d", seconds,
		      "-o", output, "--stats", stats, (char *)NULL);
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

static uint64_t first_byte_ns(pid_t pid, const char *folder)
{
	uint64_t begin_ns = bench_now_ns();
	struct run run;

	/* One tick at 1000 Hz: the whole life of the process. */
	return run_ljrecord(pid, "1000", "0.001", folder, &run) == 0 ? bench_now_ns() - begin_ns
								     : UINT64_MAX;
}

/* What a process pays that does nothing but wake up at a rate: on a virtual machine with idle
 * processors that alone can be most of a percent. */
static double empty_waker_cpu_s(unsigned rate, unsigned seconds)
{
	struct rusage usage = { 0 };
	pid_t child = fork();

	if (child == 0) {
		struct daemon_clock clock;

		prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
		daemon_clock_init(&clock, rate, daemon_now_ns(), 1);
		for (unsigned i = 0; i < rate * seconds; i++) {
			daemon_clock_wait(&clock);
			daemon_clock_advance(&clock, daemon_now_ns());
		}
		_exit(0);
	}
	wait4(child, NULL, 0, &usage);
	return cpu_seconds(&usage);
}

static void bench_rates(pid_t pid, const char *folder, bool full)
{
	const unsigned seconds = full ? 20 : 5;
	struct run slow, fast, shorter;
	double on_time, per_frame, empty_s, own;

	if (run_ljrecord(pid, "99", full ? "20" : "5", folder, &slow) != 0 ||
	    run_ljrecord(pid, "999", full ? "20" : "6", folder, &fast) != 0 ||
	    run_ljrecord(pid, "999", "2", folder, &shorter) != 0) {
		bench_result("recordings", "measured", false, "ljrecord failed");
		return;
	}
	empty_s = empty_waker_cpu_s(99, seconds);
	own = 100 * (slow.cpu_s - empty_s) / slow.elapsed_s;
	bench_result("own processor time at 99 Hz, writer included", "< 1 % of a core", own < 1,
		     "%.2f %% (%.2f %% in all; %.2f %% for a process that only wakes as often)",
		     own, 100 * slow.cpu_s / slow.elapsed_s, 100 * empty_s / seconds);
	bench_result("resident memory, larger of recorder and writer", "< 32 MiB",
		     fast.rss_mib < 32, "%.1f MiB", fast.rss_mib);
	on_time = 100 * (fast.ticks - fast.late) / (fast.ticks + fast.missed);
	bench_result("ticks on time at 999 Hz", ">= 99 %", on_time >= 99, "%.2f %% of %.0f",
		     on_time, fast.ticks + fast.missed);
	/* The steady state: what the longer run has more than the shorter. */
	per_frame = (fast.bytes - shorter.bytes) / (fast.frames - shorter.frames);
	bench_result("bytes per frame in the steady state", "<= 9", per_frame <= 9,
		     "%.2f (%.1f frames a sample)", per_frame, fast.frames / fast.samples);
}

void bench_record(bool full)
{
	char folder[] = "/tmp/ljprof-bench-XXXXXX";
	pid_t pid = bench_start_target(600);
	uint64_t start_ns[9];
	size_t runs = full ? 9 : 5;

	if (!mkdtemp(folder)) {
		perror("bench: mkdtemp");
		exit(1);
	}
	bench_rates(pid, folder, full);
	for (size_t i = 0; i < runs; i++)
		start_ns[i] = first_byte_ns(pid, folder);
	bench_result("first sample after the start (whole process)", "<= 200 ms",
		     bench_quantile(start_ns, runs, 0.5) <= 200000000u, "%.1f ms median of %zu",
		     (double)bench_quantile(start_ns, runs, 0.5) / 1e6, runs);
	bench_end_target(pid);
	rmdir(folder);
}
