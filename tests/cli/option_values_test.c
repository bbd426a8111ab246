/* SPDX-License-Identifier: MIT */
/* What the texts behind options stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/common/option_values.h"
#include "cli/common/recording.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "1", 1 },
		{ "5000", 5000 },
		{ "1K", 1024 },
		{ "64K", 65536 },
		{ "10M", 10485760 },
		{ "2G", 2147483648 },
		{ "17179869183G", 18446744072635809792u },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const wrong[] = { "",
					     "0",
					     "0K",
					     "K",
					     "-1",
					     "+1",
					     " 1",
					     "1 ",
					     "1k",
					     "1T",
					     "1KB",
					     "1.5K",
					     "0x10",
					     "1KK",
					     "a",
					     "17179869184G",
					     "18446744073709551616" };
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(options_size(good[i].text, &bytes));
		assert_true(good[i].bytes == bytes);
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(options_size(wrong[i], &bytes));
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {
		{ "1", 1 },	{ "90", 90 },	{ "90s", 90 },
		{ "1.5m", 90 }, { "1h", 3600 }, { "0.5m", 30 },
	};
	static const char *const wrong[] = { "",    "s",   "0.5", "1d", "1min",
					     "1 m", "nan", "inf", "-5", "3h" };
	double seconds;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(options_time(good[i].text, 1, 7200, &seconds));
		assert_float_equal(good[i].seconds, seconds, 1e-9);
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(options_time(wrong[i], 1, 7200, &seconds));
	assert_true(options_seconds("0.25", 0.1, 9, &seconds));
	assert_float_equal(0.25, seconds, 1e-9);
	assert_false(options_seconds("0.05", 0.1, 9, &seconds));
	assert_false(options_seconds("10", 0.1, 9, &seconds));
	assert_false(options_seconds("1s", 0.1, 9, &seconds));
	assert_false(options_seconds("nan", 0.1, 9, &seconds));
}

static void test_numbers(void **state)
{
	long value;

	(void)state;
	assert_true(options_number("-3", -3, 3, &value));
	assert_int_equal(-3, value);
	assert_false(options_number("4", -3, 3, &value));
	assert_false(options_number("", -3, 3, &value));
	assert_false(options_number("1x", -3, 3, &value));
	assert_false(options_number("99999999999999999999", 0, INT64_MAX, &value));
}

static void test_pids(void **state)
{
	static const char *const wrong[] = { "",  ",",	"1,",  ",1", "1,,2",
					     "0", "-1", "1 2", "a",  "4294967297" };
	struct options_pids pids = { 0 };

	(void)state;
	assert_true(options_add_pids("test", "7,8,7", &pids));
	assert_true(options_add_pids("test", "8", &pids));
	assert_true(options_add_pids("test", "9", &pids));
	assert_int_equal(3, pids.count);
	for (size_t i = 0; i < pids.count; i++)
		assert_int_equal(7 + i, pids.pids[i]);
	free(pids.pids);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		pids = (struct options_pids){ 0 };
		assert_false(options_add_pids("test", wrong[i], &pids));
		free(pids.pids);
	}
}

static void test_exit_codes(void **state)
{
	(void)state;
	assert_int_equal(0, recording_exit_code(DAEMON_END_STOPPED));
	assert_int_equal(0, recording_exit_code(DAEMON_END_TARGET));
	assert_int_equal(2, recording_exit_code(DAEMON_END_DENIED));
	assert_int_equal(3, recording_exit_code(DAEMON_END_NO_VM));
	assert_int_equal(4, recording_exit_code(DAEMON_END_OUTPUT));
	assert_int_equal(5, recording_exit_code(DAEMON_END_EARLY));
	assert_int_equal(6, recording_exit_code(DAEMON_END_SYSTEM));
	assert_int_equal(7, recording_exit_code(DAEMON_END_EMPTY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	   cmocka_unit_test(test_times),
		cmocka_unit_test(test_numbers),	   cmocka_unit_test(test_pids),
		cmocka_unit_test(test_exit_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
