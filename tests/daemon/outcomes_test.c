/* SPDX-License-Identifier: MIT */
/* What samples by stops stand for: the processor time that their thread has used. */
#include "daemon/outcome/outcomes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RATE_HZ = 1000, PERIOD_NS = 1000000 };

/** A thread, and how its ticks were counted. */
struct scene {
	struct daemon_options options;
	struct daemon_stats stats;
	struct recorder recorder;
	struct recorder_target of;
	struct sampled_thread data;
	uint64_t ran_ns, ticks, samples;
};

static void begin(struct scene *scene)
{
	*scene = (struct scene){ .options = { .rate_hz = RATE_HZ }, .ran_ns = 1 };
	scene->recorder.options = &scene->options;
	scene->recorder.stats = &scene->stats;
	scene->of.recorder = &scene->recorder;
}

static void owe(struct scene *scene, unsigned ticks)
{
	scene->data.pending += ticks;
	scene->ticks += ticks;
}

/* A tick, or more that were merged, meets the thread, which has run since the last one. */
static uint32_t meet(struct scene *scene, unsigned ticks, uint64_t ran_ns)
{
	uint32_t weight;

	scene->ran_ns += ran_ns;
	owe(scene, ticks);
	if (!sampled_weigh(&scene->of, &scene->data, scene->ran_ns))
		return 0;
	weight = sampled_report(&scene->of, &scene->data, DAEMON_FULL);
	scene->samples += weight;
	return weight;
}

/* … or it waits for a processor. */
static void miss(struct scene *scene, unsigned ticks)
{
	owe(scene, ticks);
	sampled_note_unscheduled(&scene->of, &scene->data);
}

/* Each tick has one outcome. */
static void end(struct scene *scene)
{
	uint64_t told = 0;

	sampled_end(&scene->of, &scene->data, DAEMON_EXITED);
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		told += scene->stats.outcomes[i];
	assert_int_equal(scene->ticks, told);
	assert_int_equal(scene->samples, scene->stats.outcomes[DAEMON_FULL]);
}

static void ticks_are_samples_where_time_agrees(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	/* Ticks come anywhere in their periods. */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(1, meet(&scene, 1, i % 2 ? PERIOD_NS / 4 : 7 * PERIOD_NS / 4));
	end(&scene);
}

static void unknown_time_changes_nothing(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	for (int i = 0; i < 10; i++) {
		owe(&scene, 3);
		assert_true(sampled_weigh(&scene.of, &scene.data, 0));
		assert_int_equal(3, sampled_report(&scene.of, &scene.data, DAEMON_FULL));
		scene.samples += 3;
	}
	end(&scene);
}

/* It runs half of the time, and only each other of these ticks is good for a sample. */
static void samples_make_up_the_time(void **state)
{
	struct scene scene;
	int64_t off;

	(void)state;
	begin(&scene);
	for (int i = 0; i < 1000; i++) {
		miss(&scene, 3);
		meet(&scene, 1, 2 * PERIOD_NS);
	}
	off = (int64_t)scene.samples - 2000;
	assert_in_range(off + 10, 0, 20);
	end(&scene);
	assert_int_equal(4000 - scene.samples, scene.stats.outcomes[DAEMON_UNSCHEDULED]);
}

/* We had no processor for long, and neither had it. */
static void merged_ticks_are_not_all_its(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	meet(&scene, 1, 0);
	for (int i = 0; i < 100; i++)
		assert_in_range(meet(&scene, 50, PERIOD_NS), 0, 6);
	assert_in_range(scene.samples, 95, 106);
	end(&scene);
}

/* What has run meanwhile is shown by more than one sample. */
static void much_time_is_for_many_samples(void **state)
{
	struct scene scene;
	uint32_t weight;

	(void)state;
	begin(&scene);
	meet(&scene, 1, 0);
	miss(&scene, 200);
	weight = meet(&scene, 1, 100 * PERIOD_NS);
	assert_in_range(weight, 10, 20);
	for (int i = 0; i < 20; i++)
		assert_in_range(meet(&scene, 1, PERIOD_NS), 1, 20);
	assert_in_range(scene.samples, 110, 125);
	end(&scene);
}

/* Time between ticks that were all told already. */
static void there_are_no_more_samples_than_ticks(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	meet(&scene, 1, 0);
	assert_int_equal(1, meet(&scene, 1, 1000 * PERIOD_NS));
	for (int i = 0; i < 10; i++)
		assert_int_equal(1, meet(&scene, 1, PERIOD_NS));
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_samples_where_time_agrees),
		cmocka_unit_test(unknown_time_changes_nothing),
		cmocka_unit_test(samples_make_up_the_time),
		cmocka_unit_test(merged_ticks_are_not_all_its),
		cmocka_unit_test(much_time_is_for_many_samples),
		cmocka_unit_test(there_are_no_more_samples_than_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
