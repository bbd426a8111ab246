/* SPDX-License-Identifier: MIT */
/* Samples by trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/recorder/traces.h"

static struct daemon_stats stats;
static struct traces *traces;

static int setup(void **state)
{
	(void)state;
	memset(&stats, 0, sizeof(stats));
	traces = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	traces_destroy(traces);
	daemon_stats_deinit(&stats);
	return 0;
}

static void count(uint32_t id, uint32_t number, enum format_compiled compiled)
{
	const struct luastate_function function = { .kind = LUASTATE_TRACE,
						    .address = number,
						    .chunkname = "@a.lua",
						    .firstline = number + 10 };
	const struct format_sample sample = {
		.weight = 1, .pid = 42, .trace = number, .trace_function = id, .compiled = compiled
	};

	traces_count(&traces, &stats, &sample, &function);
}

static void expect_listed(size_t index, uint32_t number, uint64_t exact, uint64_t approximate,
			  uint64_t trace)
{
	const struct daemon_trace *got = &stats.traces[index];

	assert_true(index < stats.trace_count);
	assert_int_equal(42, got->pid);
	assert_int_equal(number, got->number);
	assert_string_equal("@a.lua", got->chunk);
	assert_int_equal(number + 10, got->line);
	assert_int_equal(exact, got->samples[FORMAT_COMPILED_EXACT]);
	assert_int_equal(approximate, got->samples[FORMAT_COMPILED_APPROXIMATE]);
	assert_int_equal(trace, got->samples[FORMAT_COMPILED_TRACE]);
	assert_int_equal(0, got->samples[FORMAT_COMPILED_NONE]);
}

static void test_counts(void **state)
{
	(void)state;
	count(0, 3, FORMAT_COMPILED_EXACT);
	count(9, 4, FORMAT_COMPILED_TRACE);
	count(0, 3, FORMAT_COMPILED_APPROXIMATE);
	count(0, 3, FORMAT_COMPILED_EXACT);
	/* The same number again after a flush, at another place: another function. */
	count(10, 4, FORMAT_COMPILED_EXACT);
	assert_int_equal(3, stats.trace_count);
	expect_listed(0, 3, 2, 1, 0);
	expect_listed(1, 4, 0, 0, 1);
	expect_listed(2, 4, 1, 0, 0);
	assert_int_equal(3, stats.compiled[FORMAT_COMPILED_EXACT]);
	assert_int_equal(1, stats.compiled[FORMAT_COMPILED_APPROXIMATE]);
	assert_int_equal(1, stats.compiled[FORMAT_COMPILED_TRACE]);
	assert_int_equal(0, stats.unlisted_trace_samples);
}

/* Interpreted, though a trace may be noted; and compiled, but who knows where. */
static void test_no_trace(void **state)
{
	const struct format_sample unknown = { .weight = 3,
					       .trace = 5,
					       .trace_function = FORMAT_NO_FUNCTION,
					       .compiled = FORMAT_COMPILED_TRACE };

	(void)state;
	count(0, 3, FORMAT_COMPILED_NONE);
	assert_int_equal(0, stats.trace_count);
	assert_int_equal(0, stats.unlisted_trace_samples);
	traces_count(&traces, &stats, &unknown, NULL);
	assert_int_equal(0, stats.trace_count);
	assert_int_equal(3, stats.unlisted_trace_samples);
	assert_int_equal(1, stats.compiled[FORMAT_COMPILED_NONE]);
	assert_int_equal(3, stats.compiled[FORMAT_COMPILED_TRACE]);
}

/* The list is bounded, and those in it are still counted when it is full. */
static void test_full_list(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < DAEMON_TRACES_LISTED + 100; i++)
		count(i, i + 1, FORMAT_COMPILED_EXACT);
	count(0, 1, FORMAT_COMPILED_EXACT);
	count(DAEMON_TRACES_LISTED - 1, DAEMON_TRACES_LISTED, FORMAT_COMPILED_EXACT);
	assert_int_equal(DAEMON_TRACES_LISTED, stats.trace_count);
	expect_listed(0, 1, 2, 0, 0);
	expect_listed(1, 2, 1, 0, 0);
	expect_listed(DAEMON_TRACES_LISTED - 1, DAEMON_TRACES_LISTED, 2, 0, 0);
	assert_int_equal(100, stats.unlisted_trace_samples);
}

static void test_unknown_chunk(void **state)
{
	const struct luastate_function function = { .kind = LUASTATE_TRACE, .address = 1 };
	const struct format_sample sample = {
		.weight = 1, .trace = 1, .trace_function = 0, .compiled = FORMAT_COMPILED_TRACE
	};

	(void)state;
	traces_count(&traces, &stats, &sample, &function);
	assert_int_equal(1, stats.trace_count);
	assert_null(stats.traces[0].chunk);
}

int main(void)
{
#define TRACES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TRACES_TEST(test_counts),
		TRACES_TEST(test_no_trace),
		TRACES_TEST(test_full_list),
		TRACES_TEST(test_unknown_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
