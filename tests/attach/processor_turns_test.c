/* SPDX-License-Identifier: MIT */
/* Whether a thread ran at a tick, or waited for a processor, by what the scheduler has counted. */
#include "attach/thread/processor_turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/mman.h>

enum { MS = 1000000, TICK_AT = 1000 * MS };

/* Much later than we may have waited for a processor ourselves. */
#define MUCH_LATER_NS (TICK_AT + 3600ull * 1000 * MS)

/* The counts are what the test writes. */
static void count(struct attach_thread *thread, uint64_t ran_ns, uint64_t waited_ns, uint64_t runs)
{
	char text[96];
	int len = snprintf(text, sizeof(text), "%llu %llu %llu\n", (unsigned long long)ran_ns,
			   (unsigned long long)waited_ns, (unsigned long long)runs);

	assert_int_equal(0, ftruncate(thread->schedule_fd, 0));
	assert_int_equal(len, pwrite(thread->schedule_fd, text, (size_t)len, 0));
}

/* A thread that is interrupted right after the tick; it has run nine times, and waited for 7 ms. */
static void begin(struct attach_thread *thread)
{
	*thread = (struct attach_thread){ .tid = getpid(), .tick_ns = TICK_AT };
	thread->schedule_fd = memfd_create("schedstat", 0);
	assert_true(thread->schedule_fd > 0);
	count(thread, 50 * MS, 7 * MS, 9);
	turn_begin(thread);
}

static bool has_waited(struct attach_thread *thread, uint64_t last_stop_ns)
{
	uint64_t waited_ns;

	return turn_has_waited(thread, last_stop_ns, &waited_ns);
}

static void one_that_runs_stands_at_once(void **state)
{
	struct attach_thread thread;

	(void)state;
	begin(&thread);
	count(&thread, 51 * MS, 7 * MS, 9);
	assert_false(has_waited(&thread, TICK_AT + MS / 50));
	assert_int_equal(51 * MS, thread.turn.ran_ns);
	turn_end(&thread);
}

/* It was given a processor just then. */
static void one_that_waited_may_stand_at_once(void **state)
{
	struct attach_thread thread;

	(void)state;
	begin(&thread);
	count(&thread, 50 * MS, 10 * MS, 10);
	assert_true(has_waited(&thread, TICK_AT + MS / 50));
	/* Since after the tick: we have taken the processor from it. */
	count(&thread, 50 * MS, 7 * MS + MS / 100, 10);
	assert_false(has_waited(&thread, TICK_AT + MS / 50));
	turn_end(&thread);
}

static void skip_without_counts(void)
{
	struct attach_thread self = { .tid = getpid() };
	struct attach_schedule schedule;

	if (!attach_thread_schedule(&self, &schedule))
		skip();
	turn_end(&self);
}

static void one_that_stands_late(void **state)
{
	struct attach_thread thread;

	(void)state;
	skip_without_counts();
	begin(&thread);
	turn_postpone(&thread);
	assert_true(thread.turn.is_late);
	count(&thread, 50 * MS, 9 * MS, 10);
	/* When it stood is not known. */
	assert_true(has_waited(&thread, TICK_AT + 20 * MS));
	/* It has waited for 2 ms: since before the tick, or since we looked. */
	thread.woke_ns = TICK_AT + MS;
	assert_true(has_waited(&thread, TICK_AT + 20 * MS));
	thread.woke_ns = MUCH_LATER_NS;
	assert_false(has_waited(&thread, MUCH_LATER_NS));
	/* In a long system call: it has not waited at all. */
	count(&thread, 55 * MS, 7 * MS, 9);
	thread.woke_ns = 0;
	assert_false(has_waited(&thread, TICK_AT + 5 * MS));
	turn_end(&thread);
}

/* We were late, and took the processor from it when the scheduler let us. */
static void a_late_tick(void **state)
{
	struct attach_thread thread;

	(void)state;
	skip_without_counts();
	begin(&thread);
	turn_postpone(&thread);
	thread.woke_ns = MUCH_LATER_NS;
	thread.is_tick_late = true;
	count(&thread, 50 * MS, 8 * MS, 10);
	thread.turn.is_ours = false;
	assert_false(has_waited(&thread, MUCH_LATER_NS));
	thread.turn.is_ours = true;
	assert_true(has_waited(&thread, MUCH_LATER_NS));
	turn_end(&thread);
}

static void kernels_that_do_not_count(void **state)
{
	struct attach_thread thread;

	(void)state;
	begin(&thread);
	count(&thread, 0, 0, 0);
	turn_begin(&thread);
	assert_false(has_waited(&thread, TICK_AT + 50 * MS));
	assert_int_equal(0, thread.turn.ran_ns);
	turn_end(&thread);
	thread.schedule_fd = -1;
	turn_begin(&thread);
	assert_false(has_waited(&thread, TICK_AT + 50 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_runs_stands_at_once),
		cmocka_unit_test(one_that_waited_may_stand_at_once),
		cmocka_unit_test(one_that_stands_late),
		cmocka_unit_test(a_late_tick),
		cmocka_unit_test(kernels_that_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
