/* SPDX-License-Identifier: MIT */
/* Many captures against signals, kills and the tracer's own death. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/thread.h"
#include "tests/rounds.h"
#include "children.h"

#define CAPTURES_AMONG_SIGNALS test_length(500, 2000)
/** Captures that may time out: while neither side waited long for a processor, and, of all, while
 *  one did. */
#define TIMEOUTS_MAX   3
#define EXCUSED_SHARE  0.25
#define EXCUSE_NS      (20 * 1000000u)
#define KILLED_TARGETS test_length(20, 60)
#define KILLED_TRACERS test_length(100, 300)

static bool plan_stack(void *context, struct attach_image *image, unsigned round)
{
	struct failure why;

	(void)context;
	(void)round;
	attach_image_want(image, remote_addr_make(attach_sp(attach_image_registers(image))), 8192,
			  &why);
	return false;
}

static const struct attach_planner planner = { .plan = plan_stack };

/* ---- Signals ---------------------------------------------------------------------------- */

/** What a child notes of its signals. */
struct counts {
	volatile uint64_t spins;
	volatile uint64_t alarms;
	volatile uint64_t queued, queued_wrong; /* SIGRTMIN with ascending numbers */
	volatile uint64_t raised, raised_seen;	/* SIGUSR1 to itself */
	volatile uint64_t sent;			/* by the sender */
	volatile uint64_t stop_sending;
};

static struct counts *volatile counts; /* for handlers */

static void on_alarm(int number)
{
	(void)number;
	counts->alarms++;
}

static void on_raised(int number)
{
	(void)number;
	counts->raised_seen++;
}

static void on_queued(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	/* In order, none lost, none twice, with sender and value intact. */
	if (info->si_code != SI_QUEUE || (uint64_t)info->si_value.sival_int != counts->queued)
		counts->queued_wrong++;
	counts->queued++;
}

static void run_signalled(void *argument)
{
	const struct itimerval often = { .it_interval = { .tv_usec = 500 },
					 .it_value = { .tv_usec = 500 } };
	const struct sigaction queued = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO };
	const struct sigaction alarm_action = { .sa_handler = on_alarm };
	const struct sigaction raised = { .sa_handler = on_raised };

	counts = argument;
	sigaction(SIGRTMIN, &queued, NULL);
	sigaction(SIGALRM, &alarm_action, NULL);
	sigaction(SIGUSR1, &raised, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		counts->spins++;
		if (counts->spins % 1000 == 0) {
			counts->raised++;
			raise(SIGUSR1);
		}
	}
}

static pid_t signalled;

static void run_sender(void *argument)
{
	struct counts *shared = argument;

	while (!shared->stop_sending) {
		union sigval value = { .sival_int = (int)shared->sent };

		if (sigqueue(signalled, SIGRTMIN, value) == 0)
			shared->sent++;
		else
			child_nap_us(100); /* its queue is full */
		if (shared->sent % 8 == 0)
			child_nap_us(50);
	}
}

/* How long a process and this one have waited for a processor so far. */
static uint64_t waited_ns(pid_t pid)
{
	const pid_t pids[] = { pid, getpid() };
	uint64_t sum = 0, ran, waited;
	char path[64];

	for (size_t i = 0; i < 2; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pids[i]);
		file = fopen(path, "re");
		if (file && fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2)
			sum += waited;
		if (file)
			fclose(file);
	}
	return sum;
}

static void test_signals_survive(void **state)
{
	struct counts *shared = child_share(sizeof(*shared));
	struct attach_thread thread = { .syscall_fd = -1 };
	struct attach_process *process;
	struct attach_image *image = attach_image_create();
	struct attach_timing timing;
	struct failure why;
	uint64_t end_ns;
	const unsigned wanted = CAPTURES_AMONG_SIGNALS;
	unsigned captures = 0, timeouts = 0, excused = 0;
	char text[200];
	pid_t pid, sender;

	(void)state;
	pid = signalled = child_start(run_signalled, shared);
	assert_true(child_await(&shared->raised_seen, 1));
	sender = child_start(run_sender, shared);
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	thread.tid = pid;
	/* On a loaded machine the others need longer than the captures. */
	end_ns = child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * 1000000;
	for (; captures < wanted || shared->sent < 1000 || shared->alarms < 10; captures++) {
		uint64_t waited = waited_ns(pid);

		assert_true(child_now_ns() < end_ns);
		if (attach_capture(process, &thread, &planner, image, &timing, &why) != 0) {
			const bool has_waited = waited_ns(pid) - waited >= EXCUSE_NS;

			timeouts += !has_waited;
			excused += has_waited;
			failure_describe(&why, text, sizeof(text));
			if (why.kind != FAILURE_TIMEOUT || timeouts > TIMEOUTS_MAX)
				fail_msg("capture %u: %s", captures, text);
			CHILD_AWAIT(attach_thread_settle(&thread) == 0);
		}
		/* Stop upon stop would leave the target no time for anything else. */
		child_nap_us(1);
	}
	print_message("%u of %u captures timed out, %u of them on a busy machine\n",
		      timeouts + excused, captures, excused);
	assert_true(excused <= EXCUSED_SHARE * captures);
	shared->stop_sending = 1;
	assert_int_equal(sender, waitpid(sender, NULL, 0));
	assert_true(child_await(&shared->queued, shared->sent));
	assert_true(child_is_free(pid));
	assert_true(child_await(&shared->spins, shared->spins + 5000));
	kill(pid, SIGSTOP); /* a still picture of both counters */
	assert_true(child_await_state(pid, "T"));
	print_message("%d captures among %llu queued signals, %llu alarms, %llu raised ones\n",
		      captures, (unsigned long long)shared->queued,
		      (unsigned long long)shared->alarms, (unsigned long long)shared->raised);
	assert_int_equal(shared->sent, shared->queued);
	assert_int_equal(0, shared->queued_wrong);
	/* One may be raised and not handled yet. */
	assert_in_range(shared->raised - shared->raised_seen, 0, 1);
	child_end(pid);
	attach_process_close(process);
	attach_image_destroy(image);
}

/* ---- A target that is killed ------------------------------------------------------------ */

static pid_t victim;
static unsigned kill_after_us;

static void kill_victim(void *argument)
{
	(void)argument;
	child_nap_us(kill_after_us);
	kill(victim, SIGKILL);
}

static void test_target_is_killed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < KILLED_TARGETS; i++) {
		uint64_t *counter = child_share(sizeof(*counter));
		volatile int *reaped = child_share(sizeof(*reaped));
		struct attach_image *image = attach_image_create();
		struct attach_thread thread = { .syscall_fd = -1 };
		struct attach_process *process;
		struct attach_timing timing;
		struct failure why;
		uint64_t end_ns;
		pid_t killer;
		int ret = 0;

		victim = child_start_below(child_spin, counter, reaped);
		assert_true(child_await(counter, 1));
		assert_int_equal(0, attach_process_open(victim, &process, &why));
		thread.tid = victim;
		kill_after_us = (unsigned)(random() % 3000);
		killer = child_start(kill_victim, NULL);
		end_ns = child_now_ns() + (uint64_t)CHILD_DEADLINE_MS * 1000000;
		/* Killed while it stands it has to be reaped first: a timeout until then. */
		while ((ret == 0 || why.kind == FAILURE_TIMEOUT) && child_now_ns() < end_ns)
			ret = attach_capture(process, &thread, &planner, image, &timing, &why);
		assert_int_equal(-1, ret);
		assert_int_equal(FAILURE_GONE, why.kind);
		while (attach_thread_settle(&thread) != 0 && child_now_ns() < end_ns)
			child_nap_us(100);
		while (!*reaped && child_now_ns() < end_ns)
			child_nap_us(100);
		assert_true(*reaped);
		waitpid(killer, NULL, 0);
		attach_process_close(process);
		attach_image_destroy(image);
	}
}

/* ---- A tracer that is killed ------------------------------------------------------------ */

/** A tracer's progress. */
struct tracing {
	pid_t pid;
	volatile uint64_t captures;
};

static void capture_for_ever(void *argument)
{
	struct tracing *tracing = argument;
	struct attach_thread thread = { .tid = tracing->pid, .syscall_fd = -1 };
	struct attach_image *image = attach_image_create();
	struct attach_process *process;
	struct attach_timing timing;
	struct failure why;

	if (attach_process_open(tracing->pid, &process, &why) != 0)
		_exit(1);
	for (;;)
		if (attach_capture(process, &thread, &planner, image, &timing, &why) == 0)
			tracing->captures++;
}

/* Killed at any instruction, the tracer leaves nothing behind. */
static void test_tracer_is_killed(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	struct tracing *tracing = child_share(sizeof(*tracing));
	pid_t pid = child_start(child_spin, counter);
	unsigned tracers = KILLED_TRACERS, while_attached = 0;

	(void)state;
	assert_true(child_await(counter, 1));
	tracing->pid = pid;
	for (unsigned i = 0; i < tracers; i++) {
		uint64_t captures = tracing->captures, spins;
		pid_t tracer = child_start(capture_for_ever, tracing);

		assert_true(child_await(&tracing->captures, captures + 1));
		child_nap_us((unsigned)(random() % 2000));
		kill(tracer, SIGKILL);
		while_attached += child_field(pid, "TracerPid") == tracer;
		assert_int_equal(tracer, waitpid(tracer, NULL, 0));
		assert_true(child_is_free(pid));
		spins = *counter;
		assert_true(child_await(counter, spins + 1));
	}
	print_message("%llu captures by %u tracers, %u still attached when looked at\n",
		      (unsigned long long)tracing->captures, tracers, while_attached);
	child_end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_survive),
		cmocka_unit_test(test_target_is_killed),
		cmocka_unit_test(test_tracer_is_killed),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
