/* SPDX-License-Identifier: MIT */
/*
 * How much slower a busy program becomes under a profiler, and what the profiler uses itself: ours,
 * perf and LuaJIT's own, in one run. The program counts its units of work; windows with the
 * profiler and without it follow each other in pairs, in changing order, so that a machine that
 * becomes slower or faster meanwhile counts for both.
 */
#include "tests/bench/bench.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PAIRS_MAX = 64,
	PATH_MAX_BYTES = 256,
	/* From when a profiler is started until it certainly samples, and after it has ended. */
	SETTLE_US = 400 * 1000,
	LIFETIME_S = 3600,
};

/** A program that counts its units of work. */
struct worker {
	pid_t pid;
	const volatile uint64_t *count;
	char path[PATH_MAX_BYTES];
};

/** A profiler of a running process. */
struct profiler {
	const char *name;
	unsigned rate_hz;
	double most_percent; /**< Asked: upper end of the slowdown's interval; 0: nothing is. */
	/** Never returns. */
	void (*run)(const struct profiler *profiler, const char *pid, const char *output);
};

/** What one profiler used in all its windows, and how often it was there. */
struct use {
	double cpu_s, bytes;
	unsigned windows;
};

/** Of pairs of windows, in percent. */
struct slowdown {
	double percent[PAIRS_MAX];
	unsigned pairs;
};

static char folder[] = BENCH_FOLDER;

/* ---- The program ------------------------------------------------------------------------ */

static const volatile uint64_t *map_count(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *bytes = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

/* @param profile LuaJIT's own profiler: an option of its, or NULL. */
static bool start_worker(const char *work, const char *profile, struct worker *ret_worker)
{
	char seconds[16];

	snprintf(ret_worker->path, sizeof(ret_worker->path), "%s/count%d", folder, profile != NULL);
	ret_worker->count = map_count(ret_worker->path);
	if (!ret_worker->count)
		return false;
	snprintf(seconds, sizeof(seconds), "%d", LIFETIME_S);
	ret_worker->pid = fork();
	if (ret_worker->pid == 0) {
		execlp("luajit", "luajit", profile ? profile : "-jon", BENCH_UNITS_LUA, work,
		       ret_worker->path, seconds, (char *)NULL);
		_exit(127);
	}
	usleep(SETTLE_US);
	return ret_worker->pid > 0 && waitpid(ret_worker->pid, NULL, WNOHANG) == 0;
}

static void end_worker(struct worker *worker)
{
	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, NULL, 0);
	munmap((void *)(uintptr_t)worker->count, 4096);
	unlink(worker->path);
}

/* Units of work in a second. */
static double measure(const struct worker *worker, unsigned window_ms)
{
	uint64_t begin_ns = bench_now_ns(), begin = *worker->count;

	usleep(window_ms * 1000);
	return (double)(*worker->count - begin) * 1e9 / (double)(bench_now_ns() - begin_ns);
}

/* ---- Statistics ------------------------------------------------------------------------- */

static double mean_of(const struct slowdown *slowdown)
{
	double sum = 0;

	for (unsigned i = 0; i < slowdown->pairs; i++)
		sum += slowdown->percent[i];
	return sum / slowdown->pairs;
}

/* Half the width of the 95 % interval of the mean, by Student's t: 2.1 for 20 pairs, 3.2 for 4. */
static double half_of(const struct slowdown *slowdown)
{
	double mean = mean_of(slowdown), sum = 0, n = slowdown->pairs;
	double t = 1.96 + 2.4 / (n - 1) + 3.6 / ((n - 1) * (n - 1)); /* within 2 % of its tables */

	for (unsigned i = 0; i < slowdown->pairs; i++)
		sum += (slowdown->percent[i] - mean) * (slowdown->percent[i] - mean);
	return t * sqrt(sum / (n - 1) / n);
}

/* ---- Profilers -------------------------------------------------------------------------- */

static void run_ljrecord(const struct profiler *profiler, const char *pid, const char *output)
{
	char rate[16];

	snprintf(rate, sizeof(rate), "%u", profiler->rate_hz);
	execl(LJRECORD_PATH, "ljrecord", "-q", "-p", pid, "-F", rate, "-o", output, (char *)NULL);
}

static void run_perf(const struct profiler *profiler, const char *pid, const char *output)
{
	char rate[16];

	snprintf(rate, sizeof(rate), "%u", profiler->rate_hz);
	execlp("perf", "perf", "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph",
	       "dwarf", "-p", pid, "-o", output, (char *)NULL);
}

static pid_t start_profiler(const struct profiler *profiler, pid_t target, const char *output)
{
	pid_t child = fork();

	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);
		char pid[16];

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		snprintf(pid, sizeof(pid), "%d", (int)target);
		profiler->run(profiler, pid, output);
		_exit(127);
	}
	usleep(SETTLE_US);
	return child;
}

/* @return false where it did not run. */
static bool end_profiler(pid_t child, const char *output, struct use *use)
{
	struct rusage usage;
	struct stat status;
	int result;

	if (waitpid(child, &result, WNOHANG) != 0)
		return false;
	kill(child, SIGINT);
	if (wait4(child, &result, 0, &usage) != child || stat(output, &status) != 0)
		return false;
	use->cpu_s += (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	use->bytes += (double)status.st_size;
	use->windows++;
	unlink(output);
	return true;
}

/* One window with it and one without. */
static bool measure_pair(const struct profiler *profiler, const struct worker *worker,
			 unsigned window_ms, bool is_first, struct slowdown *slowdown,
			 struct use *use)
{
	char output[PATH_MAX_BYTES];
	double with, without = 0;
	pid_t child;

	snprintf(output, sizeof(output), "%s/profile", folder);
	if (!is_first)
		without = measure(worker, window_ms);
	child = start_profiler(profiler, worker->pid, output);
	with = measure(worker, window_ms);
	if (!end_profiler(child, output, use))
		return false;
	if (is_first)
		without = measure(worker, window_ms);
	slowdown->percent[slowdown->pairs++] = 100 * (1 - with / without);
	return true;
}

/* ---- Rows ------------------------------------------------------------------------------- */

static void tell(const char *work, const struct profiler *profiler, const struct slowdown *slowdown)
{
	double mean = mean_of(slowdown), half = half_of(slowdown);
	char what[128], asked[64] = "beside it";

	snprintf(what, sizeof(what), "%s: slowdown under %s at %u Hz", work, profiler->name,
		 profiler->rate_hz);
	if (profiler->most_percent > 0)
		snprintf(asked, sizeof(asked), "<= %.0f %%, upper end of 95 %%",
			 profiler->most_percent);
	bench_result(what, asked,
		     profiler->most_percent <= 0 || mean + half <= profiler->most_percent,
		     "%.2f %% (%.2f to %.2f, %u pairs)", mean, mean - half, mean + half,
		     slowdown->pairs);
}

static void tell_use(const char *work, const struct profiler *profiler, const struct use *use,
		     unsigned window_ms)
{
	double seconds = use->windows * ((double)window_ms + SETTLE_US / 1e3) / 1e3;
	char what[128];

	snprintf(what, sizeof(what), "%s: processor time and file of %s at %u Hz", work,
		 profiler->name, profiler->rate_hz);
	bench_result(what, "beside it", true, "%.2f %% of a processor, %.1f KB a second",
		     100 * use->cpu_s / seconds, use->bytes / seconds / 1e3);
}

static void measure_profiler(const char *work, const struct profiler *profiler,
			     const struct worker *worker, bool full)
{
	const unsigned window_ms = full ? 2000 : 500, pairs = full ? 20 : 4;
	struct slowdown slowdown = { .pairs = 0 };
	struct use use = { 0 };

	for (unsigned i = 0; i < pairs; i++)
		if (!measure_pair(profiler, worker, window_ms, i % 2 == 0, &slowdown, &use)) {
			bench_skip(profiler->name, "runs", "it is not there, or did not run");
			return;
		}
	tell(work, profiler, &slowdown);
	tell_use(work, profiler, &use, window_ms);
}

/* LuaJIT's own profiler is in the program from its start: two programs, of which one stands while
 * the other is measured. */
static void measure_jit_p(const char *work, unsigned rate_hz, const struct worker *without,
			  bool full)
{
	const unsigned window_ms = full ? 2000 : 500, pairs = full ? 20 : 4;
	const struct profiler own = { .name = "jit.p", .rate_hz = rate_hz };
	struct slowdown slowdown = { .pairs = 0 };
	struct worker with;
	char option[32];

	snprintf(option, sizeof(option), "-jp=Fi%u", 1000 / rate_hz);
	if (!start_worker(work, option, &with)) {
		bench_skip("jit.p", "runs", "the program does not start with %s", option);
		return;
	}
	for (unsigned i = 0; i < pairs; i++) {
		double rates[2];

		for (unsigned k = 0; k < 2; k++) {
			bool is_with = (k == 0) == (i % 2 == 0);

			kill(is_with ? without->pid : with.pid, SIGSTOP);
			kill(is_with ? with.pid : without->pid, SIGCONT);
			usleep(SETTLE_US / 4);
			rates[is_with] = measure(is_with ? &with : without, window_ms);
		}
		slowdown.percent[slowdown.pairs++] = 100 * (1 - rates[1] / rates[0]);
	}
	kill(without->pid, SIGCONT);
	end_worker(&with);
	tell(work, &own, &slowdown);
}

static void measure_work(const char *work, bool full)
{
	static const struct profiler profilers[] = {
		{ "ljrecord", 99, 1, run_ljrecord },
		{ "ljrecord", 999, 6, run_ljrecord },
		{ "ljrecord", 4999, 0, run_ljrecord },
		{ "perf record --call-graph dwarf", 99, 0, run_perf },
		{ "perf record --call-graph dwarf", 999, 0, run_perf },
	};
	struct worker worker;

	if (!start_worker(work, NULL, &worker)) {
		bench_result("slowdown", "measured", false, "%s does not start", work);
		return;
	}
	for (size_t i = 0; i < sizeof(profilers) / sizeof(profilers[0]); i++)
		measure_profiler(work, &profilers[i], &worker, full);
	measure_jit_p(work, 100, &worker, full);
	measure_jit_p(work, 1000, &worker, full);
	end_worker(&worker);
}

void bench_slowdown(bool full)
{
	bench_make_folder(folder);
	measure_work("fib", full);
	measure_work("mixed", full);
	rmdir(folder);
}
