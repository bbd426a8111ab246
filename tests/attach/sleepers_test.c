/* SPDX-License-Identifier: MIT */
/* Sleeping threads are read in place, and only if they sleep all the time. */
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/thread.h"
#include "tests/rounds.h"
#include "children.h"

enum {
	STACK_BYTES = 64,
	GROUPS = 1000,
};

/** What a child reads from, and how often it has. */
struct reading {
	int ends[2];
	volatile uint64_t count;
};

static void read_for_ever(void *argument)
{
	struct reading *reading = argument;
	char byte;

	while (read(reading->ends[0], &byte, 1) == 1)
		reading->count++;
}

/** One child under the test. */
struct asleep {
	pid_t pid;
	struct attach_process *process;
	struct attach_threads *threads;
	struct attach_thread *thread;
	struct attach_image *image;
};

static void begin(struct asleep *asleep, void (*run)(void *), void *argument)
{
	struct failure why;

	asleep->pid = child_start(run, argument);
	assert_int_equal(0, attach_process_open(asleep->pid, &asleep->process, &why));
	assert_int_equal(0, attach_threads_create(asleep->process, &asleep->threads, &why));
	asleep->thread = attach_threads_get(asleep->threads, 0);
	asleep->image = attach_image_create();
	assert_non_null(asleep->image);
}

static void end(struct asleep *asleep)
{
	child_end(asleep->pid);
	attach_image_destroy(asleep->image);
	attach_threads_destroy(asleep->threads);
	attach_process_close(asleep->process);
}

static bool plan_stack(void *context, struct attach_image *image, unsigned round)
{
	struct failure why;

	(void)context, (void)round;
	attach_image_want(image, remote_addr_make(attach_sp(attach_image_registers(image))),
			  STACK_BYTES, &why);
	return false;
}

static int capture(struct asleep *asleep,
		   bool (*plan)(void *context, struct attach_image *image, unsigned round),
		   void *context, struct attach_sleep *ret_sleep, struct failure *why)
{
	const struct attach_planner planner = { .plan = plan, .context = context };

	return attach_capture_asleep(asleep->process, asleep->thread, &planner, asleep->image,
				     ret_sleep, why);
}

static struct reading *make_reading(void)
{
	struct reading *reading = child_share(sizeof(*reading));

	assert_int_equal(0, pipe(reading->ends));
	return reading;
}

static void test_asleep(void **state)
{
	struct reading *reading = make_reading();
	struct attach_sleep sleep, again;
	const struct attach_registers *regs;
	uint8_t copied[STACK_BYTES], live[STACK_BYTES];
	struct asleep asleep;
	struct failure why;
	char name[32];

	(void)state;
	begin(&asleep, read_for_ever, reading);
	assert_true(child_await_state(asleep.pid, "S"));
	assert_int_equal(0, capture(&asleep, plan_stack, NULL, &sleep, &why));
	assert_int_equal(SYS_read, sleep.syscall);
	assert_false(sleep.is_stopped);
	regs = attach_image_registers(asleep.image);
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		assert_true(regs->r[i] == (i == ATTACH_REG_SP	? sleep.sp
					   : i == ATTACH_REG_PC ? sleep.pc
								: 0));
	assert_int_equal(0, attach_read(attach_image_reader(asleep.image),
					remote_addr_make(sleep.sp), copied, sizeof(copied), &why));
	assert_int_equal(0, attach_read(attach_process_reader(asleep.process),
					remote_addr_make(sleep.sp), live, sizeof(live), &why));
	assert_memory_equal(live, copied, sizeof(live));
	/* It has slept on: nothing woke it. */
	assert_int_equal(ATTACH_BLOCKED,
			 attach_thread_probe(asleep.process, asleep.thread, &again));
	assert_int_equal(sleep.runs, again.runs);
	assert_true(attach_thread_sleeps_on(asleep.thread, &sleep));
	assert_int_equal(0, reading->count);
	attach_thread_name(asleep.process, asleep.thread->tid, name, sizeof(name));
	assert_string_equal("attach_sleepers", name);
	end(&asleep);
}

/* Wakes the child, and waits until it sleeps in the same call at the same place again. */
static bool plan_and_wake(void *context, struct attach_image *image, unsigned round)
{
	struct asleep *asleep = ((void **)context)[0];
	struct reading *reading = ((void **)context)[1];
	uint64_t count = reading->count;

	plan_stack(NULL, image, round);
	assert_int_equal(1, write(reading->ends[1], "x", 1));
	assert_true(child_await(&reading->count, count + 1));
	assert_true(child_await_state(asleep->pid, "S"));
	return false;
}

static void test_woken(void **state)
{
	struct reading *reading = make_reading();
	struct attach_sleep sleep;
	struct asleep asleep;
	struct failure why;
	void *context[] = { &asleep, reading };

	(void)state;
	begin(&asleep, read_for_ever, reading);
	assert_true(child_await_state(asleep.pid, "S"));
	for (unsigned i = 0; i < test_rounds(200); i++) {
		assert_int_equal(-1, capture(&asleep, plan_and_wake, context, &sleep, &why));
		assert_int_equal(FAILURE_TIMEOUT, why.kind);
	}
	assert_int_equal(0, capture(&asleep, plan_stack, NULL, &sleep, &why));
	end(&asleep);
}

static void test_not_asleep(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	struct attach_sleep sleep;
	struct asleep asleep;
	struct failure why;
	char name[32];

	(void)state;
	begin(&asleep, child_spin, counter);
	assert_true(child_await(counter, 1));
	assert_int_equal(-1, capture(&asleep, plan_stack, NULL, &sleep, &why));
	assert_int_equal(FAILURE_TIMEOUT, why.kind);
	kill(asleep.pid, SIGSTOP);
	assert_true(child_await_state(asleep.pid, "T"));
	assert_int_equal(ATTACH_BLOCKED,
			 attach_thread_probe(asleep.process, asleep.thread, &sleep));
	assert_true(sleep.is_stopped);
	assert_int_equal(-1, sleep.syscall);
	child_end(asleep.pid);
	assert_int_equal(-1, capture(&asleep, plan_stack, NULL, &sleep, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	attach_thread_name(asleep.process, asleep.thread->tid, name, sizeof(name));
	assert_string_equal("", name);
	end(&asleep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_not_asleep),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
