/* SPDX-License-Identifier: MIT */
/* Samples of a thread that waits on: each is of its own moment, and stands for its own ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attach/clock.h"
#include "daemon/tick/tick.h"

enum { FRAMES = 3 };

static bool sleeps_on;
static uint32_t pending;
static struct format_sample put;
static unsigned put_count;

bool __wrap_attach_thread_sleeps_on(const struct attach_thread *thread,
				    const struct attach_sleep *sleep);
uint32_t __wrap_sampled_report(struct recorder_target *of, struct sampled_thread *data,
			       enum daemon_outcome outcome);
bool __wrap_sampled_put(struct recorder_target *of, const struct format_sample *sample);

bool __wrap_attach_thread_sleeps_on(const struct attach_thread *thread,
				    const struct attach_sleep *sleep)
{
	(void)thread, (void)sleep;
	return sleeps_on;
}

uint32_t __wrap_sampled_report(struct recorder_target *of, struct sampled_thread *data,
			       enum daemon_outcome outcome)
{
	(void)of, (void)data;
	assert_int_equal(DAEMON_ASLEEP, outcome);
	return pending;
}

bool __wrap_sampled_put(struct recorder_target *of, const struct format_sample *sample)
{
	(void)of;
	put = *sample;
	put_count++;
	return true;
}

struct scene {
	struct daemon_target *target;
	struct recorder_target of;
	struct attach_thread thread;
	struct sampled_thread data;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	*state = scene;
	if (!scene)
		return -1;
	scene->target = calloc(1, sizeof(*scene->target));
	scene->of.target = scene->target;
	sleeps_on = true;
	pending = 1;
	put_count = 0;
	return scene->target ? 0 : -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	wait_free(&scene->data);
	free(scene->target);
	free(scene);
	return 0;
}

static void keep(struct scene *scene, enum daemon_outcome outcome)
{
	const struct attach_sleep sleep = { .runs = 5 };
	struct format_frame frames[FRAMES] = { { .line = 1 }, { .line = 2 }, { .line = 3 } };
	const struct format_sample sample = {
		.time_ns = 1, .weight = 9, .pid = 42, .frames = frames, .frame_count = FRAMES
	};

	wait_keep(&scene->of, &scene->data, &sleep, &sample, outcome);
	memset(frames, 0, sizeof(frames)); /* they were the decoder's */
}

static bool goes_on(struct scene *scene)
{
	return wait_goes_on(&scene->of, &scene->thread, &scene->data);
}

static void test_each_has_its_time_and_weight(void **state)
{
	struct scene *scene = *state;
	uint64_t before_ns = clock_now_ns();

	assert_false(goes_on(scene)); /* nothing is known */
	keep(scene, DAEMON_FULL);
	for (unsigned i = 1; i <= 3; i++) {
		pending = 7 * i;
		assert_true(goes_on(scene));
		assert_int_equal(i, put_count);
		assert_true(put.time_ns >= before_ns && put.time_ns <= clock_now_ns());
		before_ns = put.time_ns + 1;
		while (clock_now_ns() < before_ns)
			;
		assert_int_equal(7 * i, put.weight);
		assert_int_equal(42, put.pid);
		assert_int_equal(FRAMES, put.frame_count);
		for (uint32_t frame = 0; frame < FRAMES; frame++)
			assert_int_equal(frame + 1, put.frames[frame].line);
	}
}

/* Another sleep, other maps, another interpreter, functions that are announced anew. */
static void test_ends(void **state)
{
	struct scene *scene = *state;

	keep(scene, DAEMON_FULL);
	sleeps_on = false;
	assert_false(goes_on(scene));
	sleeps_on = true;
	assert_true(goes_on(scene));
	scene->target->announcement++;
	assert_false(goes_on(scene));
	scene->target->announcement--;
	scene->target->generation++;
	assert_false(goes_on(scene));
	scene->target->generation--;
	scene->target->code_ns++;
	assert_false(goes_on(scene));
	assert_int_equal(1, put_count);
}

/* What a chain lacks may be learned: it is looked at again at once, and later at intervals. */
static void test_partial_chain_is_looked_at_again(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < 3; i++) {
		keep(scene, DAEMON_TRUNCATED);
		assert_false(goes_on(scene));
	}
	keep(scene, DAEMON_TRUNCATED);
	assert_true(goes_on(scene));
	keep(scene, DAEMON_FULL);
	assert_true(goes_on(scene));
}

int main(void)
{
#define WAITS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WAITS_TEST(test_each_has_its_time_and_weight),
		WAITS_TEST(test_ends),
		WAITS_TEST(test_partial_chain_is_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
