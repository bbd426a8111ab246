/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/stats.h"

#define VALUES 20000
/** The header's promise; buckets of 1/16 octave give half of 1/16 at worst. */
#define TOLERANCE 0.05

static struct daemon_histogram histogram;

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void expect_quantiles(uint64_t *values, size_t count)
{
	static const double quantiles[] = { 0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };

	memset(&histogram, 0, sizeof(histogram));
	for (size_t i = 0; i < count; i++)
		daemon_histogram_add(&histogram, values[i]);
	qsort(values, count, sizeof(values[0]), ascending);
	assert_int_equal(count, histogram.count);
	assert_int_equal(values[count - 1], histogram.max_ns);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		size_t rank = (size_t)(quantiles[i] * (double)count);
		double truth = (double)values[rank < count ? rank : count - 1];
		double got = (double)daemon_histogram_quantile(&histogram, quantiles[i]);

		if (got < truth * (1 - TOLERANCE) || got > truth * (1 + TOLERANCE))
			fail_msg("quantile %g of %zu values is %g, not %g", quantiles[i], count,
				 got, truth);
		assert_true(got <= (double)histogram.max_ns);
	}
}

static uint64_t random64(void)
{
	static uint64_t number = 88172645463325252u;

	number ^= number << 13;
	number ^= number >> 7;
	number ^= number << 17;
	return number;
}

static void test_quantiles(void **state)
{
	static uint64_t values[VALUES];

	(void)state;
	/* All magnitudes, from nanoseconds to centuries. */
	for (size_t i = 0; i < VALUES; i++)
		values[i] = random64() >> (random64() % 64);
	expect_quantiles(values, VALUES);
	/* Like stops: 20 to 60 us with a long tail. */
	for (size_t i = 0; i < VALUES; i++)
		values[i] = 20000 + random64() % 40000 + (i % 100 ? 0 : random64() % 5000000);
	expect_quantiles(values, VALUES);
	for (size_t i = 0; i < VALUES; i++)
		values[i] = i;
	expect_quantiles(values, VALUES);
	for (size_t i = 0; i < VALUES; i++)
		values[i] = 51234;
	expect_quantiles(values, VALUES);
	for (size_t count = 1; count < 20; count++) {
		for (size_t i = 0; i < count; i++)
			values[i] = random64() >> 40;
		expect_quantiles(values, count);
	}
}

static void test_extremes(void **state)
{
	uint64_t values[] = { 0, 1, 15, 16, 17, 31, 32, UINT64_MAX / 2, UINT64_MAX };

	(void)state;
	memset(&histogram, 0, sizeof(histogram));
	assert_int_equal(0, daemon_histogram_quantile(&histogram, 0.5));
	assert_int_equal(0, daemon_histogram_quantile(&histogram, 1));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		expect_quantiles(&values[i], 1);
	expect_quantiles(values, sizeof(values) / sizeof(values[0]));
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++) {
		const char *name = daemon_outcome_name((enum daemon_outcome)i);

		assert_non_null(name);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(daemon_outcome_name((enum daemon_outcome)k), name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
