/* SPDX-License-Identifier: MIT */
/* Ends of what is captured: kills, execs and exits. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "stop_target.h"
#include "children.h"

static bool plan_kill(void *context, struct attach_image *image, unsigned round)
{
	const pid_t *pid = context;
	struct failure why;

	(void)round;
	kill(*pid, SIGKILL);
	child_nap_us(20000);
	attach_image_want(image, remote_addr_make((uintptr_t)context), 8, &why);
	return false;
}

/* Killed while it stands: its parent learns of it although we, the tracer, live on. */
static void test_killed_during_a_capture(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	volatile int *reaped = child_share(sizeof(*reaped));
	pid_t pid = child_start_below(child_spin, counter, reaped);
	struct stop_target target;

	(void)state;
	assert_true(child_await(counter, 1));
	capture_open(&target, pid);
	if (capture_retry(&target, plan_kill, &pid) != 0)
		assert_int_equal(FAILURE_GONE, target.why.kind);
	capture_settle(&target.thread);
	CHILD_AWAIT(*reaped);
	assert_true(*reaped);
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_GONE, target.why.kind);
	capture_close(&target);
}

/** A process of which one thread is captured while another one calls exec. */
struct execution {
	uint64_t counter;
	volatile uint64_t exec_now, spinner;
};

static void *spin_thread(void *argument)
{
	struct execution *execution = argument;

	execution->spinner = (uint64_t)syscall(SYS_gettid);
	child_spin(&execution->counter);
	return NULL;
}

static void *exec_thread(void *argument)
{
	struct execution *execution = argument;

	while (!execution->exec_now)
		child_nap_us(200);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* of this thread */
	execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void exec_beside_spinning_worker(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, spin_thread, argument);
	exec_thread(argument);
}

static void exec_beside_spinning_main(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_thread, argument);
	spin_thread(argument);
}

static bool plan_exec(void *context, struct attach_image *image, unsigned round)
{
	struct execution *execution = context;

	(void)image;
	(void)round;
	execution->exec_now = 1;
	child_nap_us(50000);
	return false;
}

/* exec(2) ends all other threads and waits for them: one that we hold must not stay unreaped. */
static void check_exec(void (*run)(void *))
{
	struct execution *execution = child_share(sizeof(*execution));
	pid_t pid = child_start(run, execution);
	struct stop_target target;

	assert_true(child_await(&execution->counter, 1));
	capture_open(&target, pid);
	target.thread.tid = (pid_t)execution->spinner;
	if (capture_retry(&target, plan_exec, execution) != 0)
		assert_int_equal(FAILURE_GONE, target.why.kind);
	capture_settle(&target.thread);
	/* The new program sleeps; the old one never did for long. */
	CHILD_AWAIT(attach_process_fate(target.process) != ATTACH_FATE_SAME);
	assert_int_equal(ATTACH_FATE_EXEC, attach_process_fate(target.process));
	assert_true(child_is_free(pid));
	child_end(pid);
	capture_close(&target);
}

static void test_exec_ends_a_captured_worker(void **state)
{
	(void)state;
	check_exec(exec_beside_spinning_worker);
}

static void test_exec_ends_a_captured_main_thread(void **state)
{
	(void)state;
	check_exec(exec_beside_spinning_main);
}

static void *fork_slowly_in_thread(void *argument)
{
	struct execution *execution = argument;

	execution->spinner = (uint64_t)syscall(SYS_gettid);
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			continue;
	}
	return NULL;
}

static void exec_beside_vfork(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fork_slowly_in_thread, argument);
	exec_thread(argument);
}

static char thread_state(pid_t pid, pid_t tid)
{
	char name[64], text[512], *end;
	FILE *file;
	size_t len;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	file = fopen(name, "r");
	len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		fclose(file);
	text[len] = '\0';
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : 'X';
}

/* While an exec waits for us to reap a thread of ours, it lets nobody seize another one. */
static void test_seize_during_an_exec(void **state)
{
	struct execution *execution = child_share(sizeof(*execution));
	pid_t pid = child_start(exec_beside_vfork, execution);
	struct stop_target target;

	(void)state;
	assert_true(child_await(&execution->spinner, 1));
	capture_open(&target, pid);
	target.thread.tid = (pid_t)execution->spinner;
	CHILD_AWAIT(thread_state(pid, target.thread.tid) == 'D');
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_TIMEOUT, target.why.kind);
	execution->exec_now = 1;
	CHILD_AWAIT(thread_state(pid, target.thread.tid) != 'D');
	target.thread = (struct attach_thread){ .tid = pid, .syscall_fd = -1 };
	alarm(CHILD_DEADLINE_MS / 1000); /* waiting for ever is what shall not be */
	if (capture_run(&target, capture_plan_nothing, NULL) != 0)
		assert_int_not_equal(FAILURE_DENIED, target.why.kind);
	capture_settle(&target.thread);
	alarm(0);
	CHILD_AWAIT(attach_process_fate(target.process) != ATTACH_FATE_SAME);
	assert_int_equal(ATTACH_FATE_EXEC, attach_process_fate(target.process));
	assert_true(child_is_free(pid));
	child_end(pid);
	capture_close(&target);
}

static void end_on_request(void *argument)
{
	volatile uint64_t *numbers = argument;

	for (uint64_t i = 0; !numbers[1]; i++)
		numbers[0] = i;
}

/* A target that ends by itself under captures: the end is reported and nothing hangs. */
static void test_exit_under_captures(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		volatile uint64_t *numbers = child_share(2 * sizeof(*numbers));
		volatile int *reaped = child_share(sizeof(*reaped));
		pid_t pid = child_start_below(end_on_request, (void *)(uintptr_t)numbers, reaped);
		uint64_t end_ns = child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * 1000000;
		struct stop_target target;
		int ret = 0;

		assert_true(child_await(numbers, 1));
		capture_open(&target, pid);
		/* As long as it has ended but is not reaped, there is a timeout. */
		for (int k = 0;
		     (ret == 0 || target.why.kind == FAILURE_TIMEOUT) && child_now_ns() < end_ns;
		     k++) {
			ret = capture_run(&target, capture_plan_nothing, NULL);
			/* Others may have the processor for long; the next call goes on. */
			if (ret != 0 && target.why.kind == FAILURE_TIMEOUT)
				ret = 0;
			if (k == i)
				numbers[1] = 1;
		}
		assert_int_equal(-1, ret);
		assert_int_equal(FAILURE_GONE, target.why.kind);
		capture_settle(&target.thread);
		CHILD_AWAIT(*reaped);
		assert_true(*reaped);
		capture_close(&target);
		munmap((void *)(uintptr_t)numbers, 2 * sizeof(*numbers));
		munmap((void *)(uintptr_t)reaped, sizeof(*reaped));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_during_a_capture),
		cmocka_unit_test(test_exec_ends_a_captured_worker),
		cmocka_unit_test(test_exec_ends_a_captured_main_thread),
		cmocka_unit_test(test_seize_during_an_exec),
		cmocka_unit_test(test_exit_under_captures),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
