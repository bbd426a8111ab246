/* SPDX-License-Identifier: MIT */
/* What ljtop's full screen costs by kernel samples and by stops, next to the least that stops at
 * its rate cost. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

enum {
	RATE_HZ = 199,
	COLUMNS = 120,
	ROWS = 40,
	/* Of ljtop: it, its sampler, and who opens files. */
	PROCESSES_MAX = 8,
	NAME_MAX_BYTES = 64,
};

/** How long each part takes. */
struct spans {
	unsigned begin_s; /* until most functions were met */
	unsigned top_s, bare_s;
};

/* ---- ljtop ------------------------------------------------------------------------------ */

/* Processor time of one process. Source: Linux, Documentation/scheduler/sched-stats.rst. */
static uint64_t cpu_of_ns(pid_t pid)
{
	unsigned long long ns = 0;
	char name[NAME_MAX_BYTES];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/schedstat", (int)pid);
	file = fopen(name, "re");
	if (file && fscanf(file, "%llu", &ns) != 1)
		ns = 0;
	if (file)
		fclose(file);
	return ns;
}

/* And of its children, which have none. Source: proc_pid_task_children(5). */
static uint64_t cpu_of_all_ns(pid_t pid)
{
	uint64_t sum_ns = cpu_of_ns(pid);
	char name[NAME_MAX_BYTES];
	int child;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	file = fopen(name, "re");
	for (int i = 0; file && i < PROCESSES_MAX && fscanf(file, "%d", &child) == 1; i++)
		sum_ns += cpu_of_ns(child);
	if (file)
		fclose(file);
	return sum_ns;
}

/* What the terminal shows is of no interest, but somebody has to take it. */
static void watch_for(int terminal, unsigned seconds)
{
	uint64_t end_ns = bench_now_ns() + seconds * (uint64_t)1000000000;
	struct pollfd wait = { .fd = terminal, .events = POLLIN };
	char bytes[65536];

	while (bench_now_ns() < end_ns)
		if (poll(&wait, 1, 100) > 0 && read(terminal, bytes, sizeof(bytes)) <= 0)
			return;
}

/* @return Percent of a processor; -1 where it did not run. */
static double measure_top(pid_t pid, const char *capture, const struct spans *spans)
{
	struct winsize size = { .ws_row = ROWS, .ws_col = COLUMNS };
	uint64_t begin_ns, cpu_ns;
	double percent = -1;
	char text[16];
	int terminal;
	pid_t child;

	snprintf(text, sizeof(text), "%d", (int)pid);
	child = forkpty(&terminal, NULL, NULL, &size);
	if (child == 0) {
		setenv("TERM", "xterm", 1);
		execl(LJTOP_PATH, "ljtop", "--capture", capture, "--pid", text, (char *)NULL);
		_exit(127);
	}
	if (child < 0)
		return -1;
	watch_for(terminal, spans->begin_s);
	cpu_ns = cpu_of_all_ns(child);
	begin_ns = bench_now_ns();
	watch_for(terminal, spans->top_s);
	if (cpu_ns && waitpid(child, NULL, WNOHANG) == 0)
		percent = 100.0 * (double)(cpu_of_all_ns(child) - cpu_ns) /
			  (double)(bench_now_ns() - begin_ns);
	if (percent >= 0) {
		kill(child, SIGTERM);
		watch_for(terminal, 1);
		waitpid(child, NULL, 0);
	}
	close(terminal);
	return percent;
}

/* ---- Bare stops ------------------------------------------------------------------------- */

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* To wake up at each tick, and to stop the thread: what no profiler of this kind can do without. */
static double measure_bare(pid_t pid, const struct spans *spans)
{
	uint64_t begin_ns = bench_now_ns(), next_ns = begin_ns, cpu_ns = own_cpu_ns();
	uint64_t end_ns = begin_ns + spans->bare_s * (uint64_t)1000000000;

	while (bench_now_ns() < end_ns) {
		struct timespec next;

		next_ns += 1000000000 / RATE_HZ;
		next.tv_sec = (time_t)(next_ns / 1000000000);
		next.tv_nsec = (long)(next_ns % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		bench_bare_stop(pid);
	}
	return 100.0 * (double)(own_cpu_ns() - cpu_ns) / (double)(bench_now_ns() - begin_ns);
}

/* @param most Percent of a processor. @return What it used, for a comparison; negative: nothing. */
static double report_top(pid_t pid, const char *capture, double most, const struct spans *spans)
{
	double percent = measure_top(pid, capture, spans);
	char what[128], asked[64];

	snprintf(what, sizeof(what),
		 "processor time of ljtop --capture=%s at 199 Hz, 5000 functions, full screen",
		 capture);
	snprintf(asked, sizeof(asked), "< %.0f %% of a processor", most);
	if (percent < 0)
		bench_result(what, "measured", false, "it did not run");
	else
		bench_result(what, asked, percent < most, "%.2f %%", percent);
	return percent;
}

void bench_top(bool full)
{
	const struct spans spans = full ? (struct spans){ 60, 30, 15 } : (struct spans){ 5, 10, 5 };
	pid_t pid = bench_start_program(BENCH_TOP_LUA, 600);
	double before = measure_bare(pid, &spans), top = report_top(pid, "stop", 3, &spans);
	double after = measure_bare(pid, &spans), bare = (before + after) / 2;

	if (top >= 0)
		bench_result("the same, ratio to bare stops at that rate", "<= 3", top <= 3 * bare,
			     "%.2f of %.2f %%", top / bare, bare);
	/* Most functions are new at first. */
	if (peer_has_copies())
		report_top(pid, "kernel", full ? 1 : 2, &spans);
	else
		bench_skip("processor time of ljtop --capture=kernel", "measured",
			   "the kernel copies no threads here");
	bench_end_target(pid);
	bench_top_slowdown(full);
}
