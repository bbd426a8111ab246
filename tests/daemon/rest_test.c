/* SPDX-License-Identifier: MIT */
/* Ticks without copies: of threads that wait for a processor, and of those that sleep. */
#include "daemon/tick/tick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000u
#define PERIOD (SECOND / 100)

/* What the kernel tells. */
static bool is_counted;
static struct attach_schedule counted;
static enum attach_thread_state work;
static uint64_t now_ns;

bool __wrap_attach_thread_schedule(struct attach_thread *thread,
				   struct attach_schedule *ret_schedule);
enum attach_thread_state __wrap_attach_thread_state(struct attach_thread *thread, uint64_t *first,
						    uint64_t *second);
uint64_t __wrap_clock_now_ns(void);

bool __wrap_attach_thread_schedule(struct attach_thread *thread,
				   struct attach_schedule *ret_schedule)
{
	(void)thread;
	*ret_schedule = counted;
	return is_counted;
}

enum attach_thread_state __wrap_attach_thread_state(struct attach_thread *thread, uint64_t *first,
						    uint64_t *second)
{
	(void)thread, (void)first, (void)second;
	return work;
}

uint64_t __wrap_clock_now_ns(void)
{
	return now_ns;
}

/** One thread of a recording at 100 Hz. */
struct scene {
	struct daemon_options options;
	struct daemon_stats stats;
	struct recorder recorder;
	struct recorder_target of;
	struct attach_thread thread;
	struct sampled_thread data;
};

static int setup(void **state)
{
	static struct scene scene;

	memset(&scene, 0, sizeof(scene));
	scene.options.rate_hz = 100;
	scene.recorder.options = &scene.options;
	scene.recorder.stats = &scene.stats;
	scene.of.recorder = &scene.recorder;
	scene.of.listed = SIZE_MAX;
	is_counted = true;
	counted = (struct attach_schedule){ .ran_ns = 1, .waited_ns = 7 * SECOND, .runs = 5 };
	work = ATTACH_RUNNING;
	now_ns = 100ull * SECOND;
	rest_begin(&scene.thread, &scene.data.copies);
	*state = &scene;
	return 0;
}

static void look(struct scene *scene, int64_t ticks, bool has_copies)
{
	scene->data.copies.rest += ticks;
	rest_report(&scene->of, &scene->thread, &scene->data, has_copies);
}

static void expect(const struct scene *scene, uint64_t waited, uint64_t idle, int64_t rest)
{
	assert_int_equal(waited, scene->stats.outcomes[DAEMON_UNSCHEDULED]);
	assert_int_equal(idle, scene->stats.outcomes[DAEMON_IDLE]);
	assert_int_equal(waited + idle, scene->stats.thread_ticks);
	assert_int_equal(rest, scene->data.copies.rest);
	assert_int_equal(0, scene->data.pending);
}

static void run(uint64_t waited_ns)
{
	counted.runs++;
	counted.waited_ns += waited_ns;
}

static void tells_waits_of_a_thread_that_runs(void **state)
{
	struct scene *scene = *state;

	run(3 * PERIOD + PERIOD / 2);
	look(scene, 4, true);
	expect(scene, 3, 0, 1);
	run(PERIOD / 2);
	look(scene, 0, true);
	expect(scene, 4, 0, 0);
}

/* So that it is seen where a thread that runs has no copies. */
static void counts_the_time_in_which_it_ran(void **state)
{
	struct scene *scene = *state;

	look(scene, 4, false);
	assert_int_equal(0, scene->stats.ran_ns);
	now_ns += 2 * SECOND;
	run(0);
	counted.ran_ns += 3 * PERIOD;
	look(scene, 4, false);
	assert_int_equal(3 * PERIOD, scene->stats.ran_ns);
	counted.ran_ns += PERIOD;
	scene->data.copies.rest += 4;
	rest_end(&scene->of, &scene->thread, &scene->data);
	assert_int_equal(4 * PERIOD, scene->stats.ran_ns);
}

/* It was asleep at the ticks that no wait explains by the next look. */
static void tells_sleep_between_copies(void **state)
{
	struct scene *scene = *state;

	run(0);
	look(scene, 5, true);
	expect(scene, 0, 0, 5);
	run(2 * PERIOD);
	look(scene, 2, true);
	expect(scene, 2, 5, 0);
}

/* Not before it ends: only then the kernel counts it. */
static void tells_a_long_wait_when_it_ends(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < 30; i++) {
		now_ns += SECOND / 10;
		look(scene, 10, false);
	}
	expect(scene, 0, 0, 300);
	run(3ull * SECOND);
	look(scene, 0, true);
	expect(scene, 300, 0, 0);
}

static void tells_a_sleep_once_a_second(void **state)
{
	struct scene *scene = *state;

	work = ATTACH_BLOCKED;
	look(scene, 50, false);
	expect(scene, 0, 0, 50);
	now_ns += SECOND;
	look(scene, 50, false);
	expect(scene, 0, 100, 0);
}

static void tells_all_at_the_end(void **state)
{
	struct scene *scene = *state;

	run(2 * PERIOD);
	work = ATTACH_BLOCKED;
	scene->data.copies.rest = 5;
	rest_end(&scene->of, &scene->thread, &scene->data);
	expect(scene, 2, 3, 0);
	scene->data.copies.rest = 4;
	work = ATTACH_RUNNING; /* and has not run since */
	rest_end(&scene->of, &scene->thread, &scene->data);
	expect(scene, 6, 3, 0);
	scene->data.copies.rest = -2;
	rest_end(&scene->of, NULL, &scene->data);
	expect(scene, 6, 3, -2);
}

/* A kernel without these counts, or another thread with the number. */
static void takes_for_sleep_what_is_not_counted(void **state)
{
	struct scene *scene = *state;

	is_counted = false;
	now_ns += SECOND;
	look(scene, 9, false);
	expect(scene, 0, 9, 0);
	is_counted = true;
	counted = (struct attach_schedule){ .waited_ns = 1, .runs = 2 };
	now_ns += SECOND;
	look(scene, 3, false);
	expect(scene, 0, 12, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(tells_waits_of_a_thread_that_runs, setup),
		cmocka_unit_test_setup(counts_the_time_in_which_it_ran, setup),
		cmocka_unit_test_setup(tells_sleep_between_copies, setup),
		cmocka_unit_test_setup(tells_a_long_wait_when_it_ends, setup),
		cmocka_unit_test_setup(tells_a_sleep_once_a_second, setup),
		cmocka_unit_test_setup(tells_all_at_the_end, setup),
		cmocka_unit_test_setup(takes_for_sleep_what_is_not_counted, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
