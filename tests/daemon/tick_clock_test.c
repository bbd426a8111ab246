/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#include <cmocka.h>

#include "attach/clock.h"
#include "daemon/tick_clock.h"

#define TICKS 10000
#define START ((uint64_t)1000000000000)

static const unsigned rates[] = { 1, 10, 99, 499, 997, 1000, 9999, 10000 };

#define RATES (sizeof(rates) / sizeof(rates[0]))

/* Ascending, each within its period, and so without drift however many there are. */
static void test_deadlines(void **state)
{
	(void)state;
	for (size_t i = 0; i < RATES; i++) {
		struct daemon_clock clock;
		uint64_t last, period = 1000000000 / rates[i], jitter_sum = 0;

		daemon_clock_init(&clock, rates[i], START, 42);
		assert_int_equal(period, clock.period_ns);
		last = clock.deadline_ns;
		assert_in_range(last, START, START + period - 1);
		for (uint64_t tick = 1; tick <= TICKS; tick++) {
			/* Handled at once. */
			assert_int_equal(0, daemon_clock_advance(&clock, clock.deadline_ns));
			assert_true(clock.deadline_ns > last);
			assert_in_range(clock.deadline_ns, START + tick * period,
					START + (tick + 1) * period - 1);
			last = clock.deadline_ns;
			jitter_sum += last - (START + tick * period);
		}
		/* Each moment of a period is as likely as the other: their mean is half a period,
		 * and that of 10,000 has a standard deviation of 0.29 %, of which this allows five.
		 */
		assert_in_range(jitter_sum / TICKS, period / 2 - period / 64,
				period / 2 + period / 64);
	}
}

static void test_seeds(void **state)
{
	struct daemon_clock one, other;
	unsigned equal = 0;

	(void)state;
	daemon_clock_init(&one, 100, START, 0); /* a generator of xor and shift must not be 0 */
	daemon_clock_init(&other, 100, START, 1000);
	for (int i = 0; i < 1000; i++) {
		equal += one.deadline_ns == other.deadline_ns;
		daemon_clock_advance(&one, one.deadline_ns);
		daemon_clock_advance(&other, other.deadline_ns);
	}
	assert_true(equal < 5);
	assert_true(one.random != 0);
}

static void test_missed(void **state)
{
	struct daemon_clock clock;
	uint64_t period;

	(void)state;
	daemon_clock_init(&clock, 1000, START, 7);
	period = clock.period_ns;
	/* Busy for less than a period: nothing is missed. */
	assert_int_equal(0, daemon_clock_advance(&clock, START + period - 1));
	assert_int_equal(1, clock.index);
	/* Until within period 5: deadlines 2, 3 and 4 are passed over. */
	assert_int_equal(3, daemon_clock_advance(&clock, START + 5 * period + period / 2));
	assert_int_equal(5, clock.index);
	/* A suspended machine. */
	assert_int_equal(999994, daemon_clock_advance(&clock, START + 1000000 * period));
	assert_in_range(clock.deadline_ns, START + 1000000 * period, START + 1000001 * period - 1);
	/* Ticks and missed ticks are all there are. */
	assert_int_equal(1000000, clock.index);
}

static void on_alarm(int number)
{
	(void)number;
}

static void test_wait(void **state)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	struct daemon_clock clock;
	uint64_t now = clock_now_ns();

	(void)state;
	daemon_clock_init(&clock, 100, now, 3);
	daemon_clock_advance(&clock, now);
	assert_true(daemon_clock_wait(&clock, UINT64_MAX) >= 0);
	assert_true(clock_now_ns() >= clock.deadline_ns);
	/* A deadline in the past. */
	daemon_clock_init(&clock, 100, now - 1000000000, 3);
	assert_true(daemon_clock_wait(&clock, UINT64_MAX) > 0);
	/* A signal. */
	sigaction(SIGALRM, &action, NULL);
	daemon_clock_init(&clock, 1, clock_now_ns() + (uint64_t)3600 * 1000000000, 3);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(-1, daemon_clock_wait(&clock, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
