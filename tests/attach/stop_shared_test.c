/* SPDX-License-Identifier: MIT */
/* Stops of a thread that has our processor, as the kernel likes to place who wakes whom. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <cmocka.h>

#include "stop_target.h"
#include "children.h"
#include "tests/rounds.h"

enum { WORK_NS = 3 * 1000 * 1000, NAP_US = 10 * 1000 };

/* Who sleeps most of the time is given the processor of who wakes it. */
static void work_and_nap(void *turns)
{
	for (;;) {
		uint64_t begin_ns = child_now_ns();

		while (child_now_ns() - begin_ns < WORK_NS)
			++*(volatile uint64_t *)turns;
		child_nap_us(NAP_US);
	}
}

static uint64_t used_ns(clockid_t clock)
{
	struct timespec used;

	assert_int_equal(0, clock_gettime(clock, &used));
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Have the child run on our processor only, and us too. */
static void begin_sharing(pid_t pid, cpu_set_t *ret_before)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(0, sched_getaffinity(0, sizeof(*ret_before), ret_before));
	assert_int_equal(0, sched_setaffinity(0, sizeof(one), &one));
	assert_int_equal(0, sched_setaffinity(pid, sizeof(one), &one));
}

/* A thread that stands uses no processor, also where it takes ours as soon as it is let go. What we
 * have used of the processor in a capture may count twice then, which on a busy machine's emulation
 * is some milliseconds: time that its host has taken is ours there. */
static void test_time_in_which_the_target_ran(void **state)
{
	volatile uint64_t *turns = child_share(sizeof(*turns));
	pid_t pid = child_start(work_and_nap, (void *)(uintptr_t)turns);
	/* A letting go of up to 20 us is taken as it was measured, with what the target ran in it.
	 * What the clocks' own reading takes is longer in an emulated machine. */
	const uint64_t slack_ns = (test_is_emulated() ? 1000 : 100) * 1000;
	struct stop_target target;
	cpu_set_t before;
	clockid_t clock;

	(void)state;
	begin_sharing(pid, &before);
	assert_int_equal(0, clock_getcpuclockid(pid, &clock));
	capture_open(&target, pid);
	assert_true(child_await(turns, 1));
	for (int i = 0; i < 300; i++) {
		uint64_t begin_ns, used, ours;

		child_nap_us(2500);
		begin_ns = child_now_ns();
		ours = used_ns(CLOCK_THREAD_CPUTIME_ID);
		used = used_ns(clock);
		capture_expect(&target, capture_plan_nothing, NULL);
		used = used_ns(clock) - used;
		ours = used_ns(CLOCK_THREAD_CPUTIME_ID) - ours;
		assert_true(target.timing.stopped_ns - target.timing.stop_ns + used <=
			    child_now_ns() - begin_ns + ours + slack_ns);
	}
	assert_int_equal(0, sched_setaffinity(0, sizeof(before), &before));
	child_end(pid);
	capture_close(&target);
}

/* Who looks for a stop on the thread's own processor keeps it from coming to it. */
static void test_processor_is_left_to_the_target(void **state)
{
	const uint64_t look_ns = 60 * 1000; /* before it is slept for */
	uint64_t least_ns = UINT64_MAX;
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter);
	cpu_set_t before, others;

	(void)state;
	begin_sharing(pid, &before);
	capture_open(&target, pid);
	for (int i = 0; i < 100; i++) {
		capture_expect(&target, capture_plan_nothing, NULL);
		if (target.timing.stop_ns < least_ns)
			least_ns = target.timing.stop_ns;
	}
	assert_true(target.thread.shares_processor);
	/* Two switches alone take as long in an emulated machine. */
	assert_true(least_ns < look_ns || test_is_emulated());
	capture_expect_untouched(pid, counter);
	others = before;
	CPU_CLR(sched_getcpu(), &others);
	if (CPU_COUNT(&others) > 0) {
		assert_int_equal(0, sched_setaffinity(pid, sizeof(others), &others));
		capture_expect(&target, capture_plan_nothing, NULL);
		assert_false(target.thread.shares_processor);
	}
	assert_int_equal(0, sched_setaffinity(0, sizeof(before), &before));
	child_end(pid);
	capture_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_in_which_the_target_ran),
		cmocka_unit_test(test_processor_is_left_to_the_target),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
