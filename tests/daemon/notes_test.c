/* SPDX-License-Identifier: MIT */
/* What a profile says of its recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/record/notes.h"

static struct daemon_options options = { .rate_hz = 99, .mode = DAEMON_MODE_CALLGRAPH };

static void test_lines(void **state)
{
	struct daemon_process processes[] = {
		{ .pid = 4711, .kind = DAEMON_PROCESS_LUAJIT },
		{ .pid = 1, .kind = DAEMON_PROCESS_NO_LUAJIT, .name = "\033[2J" },
		{ .pid = 4712, .kind = DAEMON_PROCESS_LUAJIT },
	};
	struct daemon_stats stats = {
		.samples = 1975,
		.elapsed_ns = 20000000000,
		.outcomes = { [DAEMON_FULL] = 1973, [DAEMON_INCONSISTENT] = 2, [DAEMON_IDLE] = 3 },
		.ticks = 1978,
		.late_ticks = 4,
		.missed_ticks = 2,
		.merged_ticks = 1,
		.thread_ticks = 1978,
		.processes = processes,
		.process_count = 3
	};
	char text[NOTES_MAX];

	(void)state;
	daemon_histogram_add(&stats.stopped, 1000);
	notes_describe(&options, &stats, 12000000, text);
	assert_string_equal(
		"ljprof: version " LJPROF_VERSION ", 99 Hz, processor time, call chains, 20.00 s\n"
		"ljprof: pids 4711 4712\n"
		"ljprof: samples 1975, full chains 99.90 %, full 1973, inconsistent 2, idle 3\n"
		"ljprof: ticks 1978, late 4, missed 2, merged 1, of threads 1978\n"
		"ljprof: stopped p50 1.0 us, p99 1.0 us, max 1.0 us\n"
		"ljprof: processor time of the recorder 0.012 s\n",
		text);
}

static void test_stops(void **state)
{
	struct daemon_stats stats = {
		.capture = DAEMON_CAPTURE_KERNEL,
		.reasons = { [DAEMON_REASON_LARGE] = { .threads = 2, .stops = 31, .samples = 30 },
			     [DAEMON_REASON_SEARCH] = { .threads = 1, .stops = 1 } },
		.stopped_threads = { { .pid = 7, .tid = 7, .reason = DAEMON_REASON_SEARCH },
				     { .pid = 7, .tid = 8, .reason = DAEMON_REASON_LARGE },
				     { .pid = 7, .tid = 7, .reason = DAEMON_REASON_LARGE } },
		.stopped_thread_count = 3,
	};
	char text[NOTES_MAX];

	(void)state;
	notes_describe(&options, &stats, 0, text);
	assert_non_null(strstr(text, ", kernel samples, "));
	assert_non_null(strstr(text,
			       "ljprof: stopped, to find the VM: samples 0, stops 1, threads 1: 7\n"
			       "ljprof: stopped, stacks larger than a copy: samples 30, stops 31, "
			       "threads 2: 8 7\n"));
}

/* Numbers as large as they get, and more processes than are named, have room. */
static void test_room(void **state)
{
	enum { MANY = 40 };
	struct daemon_process processes[MANY];
	struct daemon_stats stats;
	char text[NOTES_MAX];

	(void)state;
	memset(&stats, 0xff, sizeof(stats));
	memset(&stats.stopped, 0, sizeof(stats.stopped));
	for (size_t i = 0; i < MANY; i++)
		processes[i] =
			(struct daemon_process){ .pid = INT32_MAX, .kind = DAEMON_PROCESS_LUAJIT };
	stats.processes = processes;
	stats.process_count = MANY;
	for (int i = 0; i < DAEMON_STOPPED_LISTED; i++)
		stats.stopped_threads[i] = (struct daemon_stopped_thread){
			.tid = INT32_MAX, .reason = (enum daemon_reason)(i % DAEMON_REASON_COUNT)
		};
	stats.stopped_thread_count = DAEMON_STOPPED_LISTED;
	options.wall = true;
	notes_describe(&options, &stats, UINT64_MAX, text);
	assert_non_null(strstr(text, "wall clock"));
	assert_non_null(strstr(text, " 2147483647 and 24 more, and 18446744073709551615 processes "
				     "that are not listed\n"));
	assert_string_equal(" s\n", text + strlen(text) - 3);
	assert_in_range(strlen(text), 1, NOTES_MAX - 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
