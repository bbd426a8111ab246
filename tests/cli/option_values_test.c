/* SPDX-License-Identifier: MIT */
/* What the texts behind options stand for. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
		{ "1", 1 },	{ "90", 90 },	{ "90s", 90 },	   { "1.5m", 90 },
		{ "1h", 3600 }, { "0.5m", 30 }, { "1500ms", 1.5 },
	};
	static const char *const wrong[] = { "",   "s",	 "0.5", "1d", "1min", "1 m",  "nan",  "inf",
					     "-5", "3h", "1M",	"1S", "1mm",  "1msm", "500ms" };
	double seconds;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(options_time(good[i].text, 1, 1, 7200, &seconds));
		assert_float_equal(good[i].seconds, seconds, 1e-9);
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(options_time(wrong[i], 1, 1, 7200, &seconds));
	assert_true(options_time("0.25", 1, 0.1, 9, &seconds));
	assert_float_equal(0.25, seconds, 1e-9);
	assert_true(options_time("250ms", 1, 0.1, 9, &seconds));
	assert_float_equal(0.25, seconds, 1e-9);
	assert_false(options_time("0.05", 1, 0.1, 9, &seconds));
	assert_false(options_time("50ms", 1, 0.1, 9, &seconds));
	assert_false(options_time("10", 1, 0.1, 9, &seconds));
	/* A number without a unit. */
	assert_true(options_time("50", 1e-3, 1e-3, 60, &seconds));
	assert_float_equal(0.05, seconds, 1e-9);
	assert_true(options_time("2s", 1e-3, 1e-3, 60, &seconds));
	assert_float_equal(2, seconds, 1e-9);
	assert_false(options_time("0.5", 1e-3, 1e-3, 60, &seconds));
}

static void expect_match(const char *pattern, const char *name, bool matches)
{
	regex_t regex;

	assert_int_equal(0, regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB));
	assert_int_equal(matches, regexec(&regex, name, 0, NULL, 0) == 0);
	regfree(&regex);
}

/* Names are names here, not patterns; the kernel cuts long ones. */
static void test_exact_names(void **state)
{
	static const char hostile[] = "a.b*[c](d|e){2}$^\\";
	struct options_names names = { 0 };

	(void)state;
	options_add_exact_name("test", "nginx", &names);
	options_add_exact_name("test", hostile, &names);
	options_add_exact_name("test", "a-name-of-24-characters!", &names);
	assert_int_equal(3, names.count);
	assert_int_equal(3, names.exact_count);
	assert_string_equal(hostile, names.words[1]);
	expect_match(names.patterns[0], "nginx", true);
	expect_match(names.patterns[0], "nginx2", false);
	expect_match(names.patterns[0], "xnginx", false);
	expect_match(names.patterns[1], hostile, true);
	expect_match(names.patterns[1], "aXb*[c](d|e){2}$^\\", false);
	expect_match(names.patterns[2], "a-name-of-24-characters!", true);
	expect_match(names.patterns[2], "a-name-of-24-ch", true);
	expect_match(names.patterns[2], "a-name-of-24-c", false);
	options_names_deinit(&names);
}

static const char *guess(const char *wrong, const char *const *words)
{
	struct options_guess guess = { 0 };

	for (; *words; words++)
		options_guess(wrong, *words, &guess);
	return guess.word ? guess.word : "";
}

static void test_guesses(void **state)
{
	static const char *const words[] = { "format", "frequency", "file", "q", "", NULL };
	char longest[200];

	(void)state;
	assert_string_equal("format", guess("formt", words));
	assert_string_equal("format", guess("fromat", words));
	assert_string_equal("format", guess("formaat", words));
	assert_string_equal("frequency", guess("freqency", words));
	assert_string_equal("file", guess("flie", words));
	assert_string_equal("", guess("xyz", words));
	assert_string_equal("", guess("q", words));
	assert_string_equal("", guess("", words));
	memset(longest, 'f', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal("", guess(longest, words));
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
		cmocka_unit_test(test_exit_codes), cmocka_unit_test(test_exact_names),
		cmocka_unit_test(test_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
