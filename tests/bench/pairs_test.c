/* SPDX-License-Identifier: MIT */
/* What pairs of measurements tell. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bench/pairs.h"

/* So many that half a unit does not count. */
#define UNITS 100000000

static struct pairs_work work(double units)
{
	return (struct pairs_work){ .units = (uint64_t)(units * UNITS), .ns = 120000000 };
}

static void assert_near(double wanted, double found, double most)
{
	if (!(fabs(wanted - found) <= most))
		fail_msg("%.6f is not %.6f within %.6f", found, wanted, most);
}

static void test_same_each_time(void **state)
{
	struct pairs pairs = { .count = 0 };
	struct pairs_estimate found;

	(void)state;
	for (int i = 0; i < 100; i++)
		pairs_add(&pairs, work(0.97), work(1));
	found = pairs_estimate(&pairs);
	assert_near(3, found.mean, 1e-5);
	assert_near(3, found.lower, 1e-5);
	assert_near(3, found.upper, 1e-5);
	assert_near(3, found.plain, 1e-5);
}

/* A machine that halves its speed in any window says nothing of the profiler. */
static void test_machine_favours_neither(void **state)
{
	struct pairs pairs = { .count = 0 };
	struct pairs_estimate found;

	(void)state;
	for (int i = 0; i < 40; i++) {
		pairs_add(&pairs, work(1), work(0.5));
		pairs_add(&pairs, work(0.5), work(1));
	}
	found = pairs_estimate(&pairs);
	assert_near(0, found.mean, 1e-5);
	assert_near(0, found.plain, 1e-5);
	assert_true(found.lower < 0 && found.upper > 0);
	/* Its ends are as far away: one program's speed is the other's inverse. */
	assert_near(1, (1 - found.lower / 100) * (1 - found.upper / 100), 1e-6);
}

/* The lengths of windows are not what counts. */
static void test_windows_differ_in_length(void **state)
{
	struct pairs pairs = { .count = 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		pairs_add(&pairs, (struct pairs_work){ 9 * UNITS, 1000000000 },
			  (struct pairs_work){ UNITS, 100000000 });
	assert_near(10, pairs_estimate(&pairs).mean, 1e-5);
}

/* Of ten numbers two at each end go. Worked out by hand: the logarithms 3 to 8 percent are kept and
 * have the mean 5.5; winsorized, the squares' sum is 3 * 2 * 6.25 + 2 * 2.25 + 2 * 0.25 = 42.5, the
 * term's root of 42.5 / 6 / 5 is 1.1902, and Student's t of six numbers 2.571. */
static void test_ends_are_cut(void **state)
{
	const double percent[] = { 5, 1000, 3, 8, -900, 4, 7, 1000, 6, -5 };
	struct pairs pairs = { .count = 10 };
	struct pairs_estimate found;
	double sum = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		pairs.logs[i] = percent[i] / 100;
		sum += pairs.logs[i];
	}
	found = pairs_estimate(&pairs);
	assert_near(100 * (1 - exp(-0.055)), found.mean, 1e-9);
	assert_near(100 * (1 - exp(-sum / 10)), found.plain, 1e-9);
	/* Its t is within 2 % of the tables'. */
	assert_near(100 * (1 - exp(-0.055 - 0.011902 * 2.571)), found.upper, 0.02 * 3.06);
	assert_near(100 * (1 - exp(-0.055 + 0.011902 * 2.571)), found.lower, 0.02 * 3.06);
}

/* A program that does not come to its next unit is slow, not unknown. */
static void test_no_unit(void **state)
{
	struct pairs pairs = { .count = 0 };
	struct pairs_estimate found;

	(void)state;
	for (int i = 0; i < PAIRS_MIN; i++)
		pairs_add(&pairs, work(0), (struct pairs_work){ 50, 120000000 });
	found = pairs_estimate(&pairs);
	assert_near(100 * (1 - 0.5 / 50.5), found.mean, 1e-9);
	assert_true(isfinite(found.lower) && isfinite(found.upper));
}

static void test_as_many_as_there_is_room_for(void **state)
{
	struct pairs pairs = { .count = 0 };

	(void)state;
	for (int i = 0; i < PAIRS_MAX; i++)
		pairs_add(&pairs, work(1), work(1));
	pairs_add(&pairs, work(0), work(1));
	assert_int_equal(PAIRS_MAX, pairs.count);
	assert_near(0, pairs_estimate(&pairs).plain, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_each_time),
		cmocka_unit_test(test_machine_favours_neither),
		cmocka_unit_test(test_windows_differ_in_length),
		cmocka_unit_test(test_ends_are_cut),
		cmocka_unit_test(test_no_unit),
		cmocka_unit_test(test_as_many_as_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
