/* SPDX-License-Identifier: MIT */
/* What ljtop's header counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/top/draw/top_numbers.h"

static void test_activities(void **state)
{
	uint32_t states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t counts[TOP_ACTIVITY_COUNT], sum = 0;

	(void)state;
	for (uint32_t i = 0; i < FORMAT_STATE_COUNT; i++)
		states[i] = 1u << i;
	for (uint32_t i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		outcomes[i] = 1u << (16 + i);
	top_count_activities(states, outcomes, counts);
	assert_int_equal(1u << FORMAT_STATE_TRACE, counts[TOP_COMPILED]);
	assert_int_equal(1u << FORMAT_STATE_GC, counts[TOP_GC]);
	assert_int_equal(1u << FORMAT_STATE_EXIT, counts[TOP_EXITS]);
	assert_int_equal(1u << FORMAT_STATE_INTERP | 1u << FORMAT_STATE_LFUNC,
			 counts[TOP_INTERPRETER]);
	assert_int_equal(1u << FORMAT_STATE_FFUNC | 1u << FORMAT_STATE_CFUNC, counts[TOP_C]);
	assert_int_equal(1u << FORMAT_STATE_RECORD | 1u << FORMAT_STATE_OPT |
				 1u << FORMAT_STATE_ASM,
			 counts[TOP_RECORDING]);
	assert_int_equal(1u << (16 + DAEMON_IDLE) | 1u << (16 + DAEMON_ASLEEP), counts[TOP_IDLE]);
	assert_int_equal(1u << (16 + DAEMON_UNSCHEDULED), counts[TOP_UNSCHEDULED]);
	for (int i = 0; i < TOP_ACTIVITY_COUNT; i++) {
		sum += counts[i];
		assert_non_null(top_activity_name(i));
	}
	/* Each state in one of them. */
	assert_int_equal(
		(1u << FORMAT_STATE_COUNT) - 1 + counts[TOP_UNSCHEDULED] + counts[TOP_IDLE], sum);
}

/* The share counts every sample that wanted a chain, whatever broke it off. */
static void test_full_share(void **state)
{
	static const enum daemon_outcome broken[] = { DAEMON_INCONSISTENT, DAEMON_TRUNCATED,
						      DAEMON_UNWOUND };
	uint64_t outcomes[DAEMON_OUTCOME_COUNT] = { 0 };

	(void)state;
	assert_float_equal(0, top_full_percent(outcomes), 1e-9);
	outcomes[DAEMON_FULL] = 30;
	outcomes[DAEMON_IDLE] = outcomes[DAEMON_NO_VM] = 1000;
	assert_float_equal(100, top_full_percent(outcomes), 1e-9);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		outcomes[broken[i]] = 10;
		assert_float_equal(75, top_full_percent(outcomes), 1e-9);
		outcomes[broken[i]] = 0;
	}
}

static void test_rates(void **state)
{
	const struct daemon_history_point moment = { .span_ns = 500000000 }, none = { 0 };

	(void)state;
	assert_float_equal(14, top_rate(7, &moment), 1e-9);
	assert_float_equal(0, top_rate(7, &none), 1e-9);
	assert_float_equal(25, format_percent(1, 4), 1e-9);
	assert_float_equal(0, format_percent(1, 0), 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_activities),
		cmocka_unit_test(test_full_share),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
