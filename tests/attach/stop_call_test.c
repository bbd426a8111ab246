/* SPDX-License-Identifier: MIT */
/* Calls and signals that a stop meets: the thread notices neither more nor less than without it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process/process_internal.h"
#include "attach/thread/thread_internal.h"
#include "children.h"
#include "stop_target.h"

/* ---- System calls that a stop ends ------------------------------------------------------ */

#ifdef __x86_64__
enum { CAN_RESTART = 1 };
#else
enum { CAN_RESTART = 0 };
#endif

/* The kernel ends these with EINTR, whatever the reason. */
static void wait_in_epoll(void *argument)
{
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t *interrupted = argument;

	for (;;)
		*interrupted += epoll_wait(fd, &event, 1, -1) < 0 && errno == EINTR;
}

static void wait_for_signal(void *argument)
{
	const struct timespec hour = { .tv_sec = 3600 };
	uint64_t *interrupted = argument;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	for (;;)
		*interrupted += sigtimedwait(&set, NULL, &hour) < 0 && errno == EINTR;
}

static int make_slow_socket(void)
{
	const struct timeval hour = { .tv_sec = 3600 };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
	    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof(hour)) != 0)
		_exit(1);
	return ends[0];
}

static void wait_in_recv(void *argument)
{
	uint64_t *interrupted = argument;
	int fd = make_slow_socket();
	char byte;

	for (;;)
		*interrupted += recv(fd, &byte, 1, 0) < 0 && errno == EINTR;
}

static void wait_in_read(void *argument)
{
	uint64_t *interrupted = argument;
	int fd = make_slow_socket();
	char byte;

	for (;;)
		*interrupted += read(fd, &byte, 1) < 0 && errno == EINTR;
}

static void wait_in_pause(void *argument)
{
	uint64_t *interrupted = argument;

	for (;;) /* restarted: returns after a signal's handler only */
		*interrupted += (uint64_t)-pause();
}

static void wait_in_nanosleep(void *argument)
{
	const struct timespec hour = { .tv_sec = 3600 };
	uint64_t *interrupted = argument;

	for (;;) /* restarted with the rest of the time */
		*interrupted += nanosleep(&hour, NULL) != 0;
}

/* What the recorder avoids, by looking before it stops. */
static void stop_in_call(void (*wait)(void *), uint64_t interruptions)
{
	uint64_t *interrupted = child_share(sizeof(*interrupted));
	pid_t pid = child_start(wait, interrupted);
	struct stop_target target;

	capture_open(&target, pid);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_true(child_await_state(pid, "S"));
		capture_expect(&target, capture_plan_nothing, NULL);
		assert_true(attach_was_interrupted(attach_process_reader(target.process),
						   attach_image_registers(target.image)));
		assert_true(child_await(interrupted, interruptions * i));
		child_nap_us(2000);
	}
	assert_true(child_await_state(pid, "S"));
	if (interruptions == 0)
		assert_int_equal(0, *interrupted);
	child_end(pid);
	capture_close(&target);
}

static void test_calls(void **state)
{
	(void)state;
	stop_in_call(wait_in_epoll, !CAN_RESTART);
	stop_in_call(wait_for_signal, !CAN_RESTART);
	stop_in_call(wait_in_pause, 0);
	stop_in_call(wait_in_nanosleep, 0);
}

/* Of a socket's call nobody knows whether its time is over where the stop took long. */
static void stop_in_socket_call(void (*wait)(void *))
{
	uint64_t *interrupted = child_share(sizeof(*interrupted)), late = 0;
	pid_t pid = child_start(wait, interrupted);
	struct stop_target target;

	capture_open(&target, pid);
	for (int i = 0; i < 20; i++) {
		uint64_t begin_ns = child_now_ns();

		assert_true(child_await_state(pid, "S"));
		capture_expect(&target, capture_plan_nothing, NULL);
		late += !CAN_RESTART || child_now_ns() - begin_ns >= PROCESS_PROMPT_NS;
		child_nap_us(2000);
	}
	assert_true(child_await_state(pid, "S"));
	assert_in_range(*interrupted, 0, late);
	child_end(pid);
	capture_close(&target);
}

static void test_socket_calls(void **state)
{
	(void)state;
	stop_in_socket_call(wait_in_recv);
	stop_in_socket_call(wait_in_read);
}

#ifdef __x86_64__
/* Ends the process for the call by which the kernel goes on with a wait. */
static bool filter_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]),
					    .filter = filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void wait_filtered(void *argument)
{
	if (!filter_calls())
		_exit(1);
	wait_in_nanosleep(argument);
}

static void test_filtered_call(void **state)
{
	(void)state;
	stop_in_call(wait_filtered, 0);
}
#endif

/* ---- Signals ---------------------------------------------------------------------------- */

/* Numbers of one child that counts signals, in shared memory. */
static volatile uint64_t *volatile handled;

static void count_signal(int number)
{
	(void)number;
	handled[1]++;
}

static void spin_with_handler(void *argument)
{
	handled = argument;
	signal(SIGUSR1, count_signal);
	child_spin(argument);
}

static void test_signal_during_a_capture(void **state)
{
	volatile uint64_t *numbers = child_share(2 * sizeof(*numbers));
	pid_t pid = child_start(spin_with_handler, (void *)(uintptr_t)numbers);
	struct capture_signal sending = { pid, SIGUSR1 };
	struct stop_target target;

	(void)state;
	assert_true(child_await(numbers, 1));
	capture_open(&target, pid);
	for (uint64_t i = 1; i <= 200; i++) {
		capture_expect(&target, capture_plan_signal, &sending);
		assert_true(child_await(&numbers[1], i));
		assert_int_equal(i, numbers[1]);
	}
	capture_expect_untouched(pid, numbers);
	child_end(pid);
	capture_close(&target);
}

/* An event loop that relies on signals to end its wait. */
static void wait_with_handler(void *argument)
{
	handled = argument;
	signal(SIGUSR1, count_signal);
	wait_in_epoll(argument);
}

static void test_signal_ends_a_wait(void **state)
{
	volatile uint64_t *numbers = child_share(2 * sizeof(*numbers));
	pid_t pid = child_start(wait_with_handler, (void *)(uintptr_t)numbers);
	struct capture_signal sending = { pid, SIGUSR1 };
	struct stop_target target;

	(void)state;
	capture_open(&target, pid);
	for (uint64_t i = 1; i <= 200; i++) {
		assert_true(child_await_state(pid, "S"));
		capture_expect(&target, capture_plan_signal, &sending);
		assert_true(child_await(&numbers[0], i));
		assert_int_equal(i, numbers[0]);
		assert_int_equal(i, numbers[1]);
	}
	child_end(pid);
	capture_close(&target);
}

/* A signal that is ignored ends no wait. Under ptrace the kernel tells of it all the same. */
static void wait_ignoring(void *argument)
{
	signal(SIGUSR1, SIG_IGN);
	wait_in_epoll(argument);
}

enum { WAITS = 50 };

static void test_ignored_signal_during_a_wait(void **state)
{
	volatile uint64_t *interrupted = child_share(sizeof(*interrupted));
	pid_t pid = child_start(wait_ignoring, (void *)(uintptr_t)interrupted);
	struct capture_signal sending = { pid, SIGUSR1 };
	struct stop_target target;

	(void)state;
	capture_open(&target, pid);
	for (int i = 0; i < WAITS; i++) {
		assert_true(child_await_state(pid, "S"));
		capture_expect(&target, capture_plan_signal, &sending);
	}
	assert_true(child_await(interrupted, CAN_RESTART ? 0 : WAITS));
	child_nap_us(2000);
	assert_int_equal(CAN_RESTART ? 0 : WAITS, *interrupted);
	child_end(pid);
	capture_close(&target);
}

/* One that has fallen asleep during a rehearsal is left alone. */
static void test_asleep_after_rehearsal(void **state)
{
	volatile uint64_t *interrupted = child_share(sizeof(*interrupted));
	pid_t pid = child_start(wait_in_epoll, (void *)(uintptr_t)interrupted);
	struct stop_target target;
	char path[64];

	(void)state;
	capture_open(&target, pid);
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	target.thread.syscall_fd = open(path, O_RDONLY | O_CLOEXEC);
	target.rehearses = true;
	assert_true(child_await_state(pid, "S"));
	capture_expect(&target, capture_plan_nothing, NULL);
	assert_true(child_await(interrupted, !CAN_RESTART));
	assert_true(child_await_state(pid, "S"));
	target.thread.last_stop_ns = 1; /* long ago */
	assert_int_equal(-1, capture_run(&target, capture_plan_nothing, NULL));
	assert_int_equal(FAILURE_ASLEEP, target.why.kind);
	assert_int_equal(0, child_field(pid, "TracerPid"));
	assert_int_equal(!CAN_RESTART, *interrupted);
	close(target.thread.syscall_fd);
	child_end(pid);
	capture_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_socket_calls),
#ifdef __x86_64__
		cmocka_unit_test(test_filtered_call),
#endif
		cmocka_unit_test(test_signal_during_a_capture),
		cmocka_unit_test(test_signal_ends_a_wait),
		cmocka_unit_test(test_ignored_signal_during_a_wait),
		cmocka_unit_test(test_asleep_after_rehearsal),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
