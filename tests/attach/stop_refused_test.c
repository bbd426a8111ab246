/* SPDX-License-Identifier: MIT */
/* Stops that the kernel refuses: another tracer has the thread, or there is no permission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stop_target.h"
#include "children.h"
#include "tests/rounds.h"

enum { NOBODY = 65534 };

static void trace_for_ever(void *argument)
{
	ptrace(PTRACE_SEIZE, *(pid_t *)argument, NULL, NULL);
	for (;;)
		pause();
}

static void test_busy(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter), tracer;

	(void)state;
	capture_open(&target, pid);
	tracer = child_start(trace_for_ever, &pid);
	while (child_field(pid, "TracerPid") == 0)
		child_nap_us(100);
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_BUSY, target.why.kind);
	assert_int_equal(tracer, target.why.address);
	assert_int_equal(tracer, child_field(pid, "TracerPid"));
	child_end(tracer);
	capture_expect(&target, capture_plan_nothing, NULL);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

/* As another recorder does, as often as it can. */
static void trace_often(void *argument)
{
	pid_t pid = *(pid_t *)argument;
	int status;

	for (;;) {
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
			continue;
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		waitpid(pid, &status, __WALL);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
}

/* One that comes and goes is never taken for a want of permission. */
static void test_busy_often(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid = capture_start_spinning(&counter), tracer;
	unsigned busy = 0;
	char text[200];

	(void)state;
	capture_open(&target, pid);
	tracer = child_start(trace_often, &pid);
	while (child_field(pid, "TracerPid") == 0)
		continue;
	for (unsigned i = 0; i < test_length(5000, 20000); i++) {
		if (capture_run(&target, capture_plan_nothing, NULL) == 0)
			continue;
		if (target.why.kind == FAILURE_TIMEOUT)
			continue;
		if (target.why.kind != FAILURE_BUSY) {
			failure_describe(&target.why, text, sizeof(text));
			fail_msg("stop %u: %s", i, text);
		}
		assert_int_equal(tracer, target.why.address);
		busy++;
	}
	assert_true(busy > 0);
	child_end(tracer);
	capture_settle(&target.thread);
	capture_expect(&target, capture_plan_nothing, NULL);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

/* One that may not be traced any more says so each time, and is stopped again where it may. */
static void test_permission_lost(void **state)
{
	volatile uint64_t *counter;
	struct stop_target target;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		printf("[ SKIPPED  ] permission lost: this test needs root to become another "
		       "user\n");
		skip();
	}
	pid = capture_start_spinning(&counter);
	capture_open(&target, pid);
	capture_expect(&target, capture_plan_nothing, NULL);
	for (int i = 0; i < 3; i++) {
		int ret;

		assert_int_equal(0, setresuid(NOBODY, NOBODY, 0));
		ret = capture_run(&target, capture_plan_nothing, NULL);
		assert_int_equal(0, setresuid(0, 0, 0));
		assert_int_equal(-1, ret);
		assert_int_equal(FAILURE_DENIED, target.why.kind);
	}
	capture_expect(&target, capture_plan_nothing, NULL);
	capture_expect_untouched(pid, counter);
	child_end(pid);
	capture_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_busy_often),
		cmocka_unit_test(test_permission_lost),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
