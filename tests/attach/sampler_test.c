/* SPDX-License-Identifier: MIT */
/* Copies that the kernel makes of a thread that runs on: which, when, and of whom. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/failure.h"
#include "tests/rounds.h"
#include "children.h"
#include "sampler_scene.h"

enum {
	LOW_RATE_HZ = 97,
	SHORT_LIVES = 64,
	DESCRIPTORS = 4096,
};

static void refuses_what_is_no_program(void **state)
{
	static const uint64_t words[64] = { 0x464c457f };
	const struct attach_sampler_object object = { .bytes = words, .len = sizeof(words) };
	struct attach_sampler *sampler = NULL;
	struct failure why;

	(void)state;
	assert_int_equal(-1, attach_sampler_create(&object, LOW_RATE_HZ, &sampler, &why));
	assert_true(why.kind == FAILURE_SYSTEM || why.kind == FAILURE_LIMIT);
	assert_null(sampler);
}

static void rests(void **state)
{
	struct scene scene;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene_await(&scene, 20);
	scene.plan->head.rest_ns = UINT64_MAX;
	scene_watch(&scene, NULL);
	for (int i = 0; i < SCENE_PATIENCE_S * 100 && scene.plan->head.skipped < 50; i++)
		child_nap_us(10 * 1000);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_true(scene.plan->head.skipped >= 50);
	assert_int_equal(0, scene.count);
	scene.plan->head.rest_ns = 0;
	scene_await(&scene, 20);
	scene_end(&scene);
}

static void makes_no_copies_behind_its_end(void **state)
{
	struct scene scene;
	uint64_t end_ns;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene_await(&scene, 20);
	attach_sampler_end(scene.sampler);
	end_ns = child_now_ns();
	child_nap_us(100 * 1000);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_true(scene.last_ns <= end_ns);
	scene_end(&scene);
}

static void leaves_sleepers_alone(void **state)
{
	struct scene scene;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_sleep, NULL);
	assert_true(child_await_state(scene.pid, "S"));
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	scene.count = 0;
	child_nap_us(200 * 1000);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_int_equal(0, scene.count);
	scene_end(&scene);
}

static void counts_what_has_no_room(void **state)
{
	const bool emulated = test_is_emulated();
	const uint64_t many = emulated ? 100 : 1000;
	struct scene scene;

	(void)state;
	/* An emulated machine fills no ring but the smallest, and that at the highest rate that has
	 * it: it holds a few seconds. */
	scene_begin(&scene, emulated ? 1000 : 10000, scene_spin, NULL);
	for (int i = 0; i < SCENE_PATIENCE_S * 100 && scene.plan->head.lost == 0; i++)
		child_nap_us(10 * 1000);
	assert_true(scene.plan->head.lost > 0);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_true(scene.count > many);
	scene_await(&scene, scene.count + many);
	scene_end(&scene);
}

static bool take_three(struct scene *scene)
{
	return scene->count < 3;
}

static void leaves_the_rest_for_later(void **state)
{
	struct scene scene;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene.check = take_three;
	for (int i = 0; i < SCENE_PATIENCE_S * 100 && scene.count < 3; i++) {
		child_nap_us(50 * 1000);
		if (!attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene))
			break;
	}
	assert_int_equal(3, scene.count);
	scene.check = NULL;
	scene_await(&scene, 20);
	scene_end(&scene);
}

static void forgets_a_thread(void **state)
{
	struct scene scene;
	struct failure why;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	scene_await(&scene, 5);
	child_nap_us(50 * 1000); /* copies that are under way */
	attach_sampler_remove(scene.sampler, &scene.plan->head);
	scene.count = 0;
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	child_nap_us(50 * 1000);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_int_equal(0, scene.count);
	assert_int_equal(0, scene_add(&scene, &scene_nothing, &why));
	scene_await(&scene, 5);
	scene_end(&scene);
}

static void tells_of_threads_that_are_gone(void **state)
{
	struct attach_sampler_plan *plan;
	struct scene scene;
	struct failure why;
	pid_t pid;

	(void)state;
	scene_begin(&scene, SCENE_RATE_HZ, scene_spin, NULL);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(pid, waitpid(pid, NULL, 0));
	assert_int_equal(-1, attach_sampler_add(scene.sampler, pid, pid, &scene,
						&scene_nothing.head, &plan, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	scene_end(&scene);
}

static uint64_t used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** Pipes: of the first a byte lets a child go, to the second it writes one when it is done. */
struct starting_line {
	int go[2], done[2];
};

/* Half a period of processor time at LOW_RATE_HZ, then nothing any more. */
static void live_shortly(void *argument)
{
	const struct starting_line *line = argument;
	uint64_t begun;
	char byte;

	if (read(line->go[0], &byte, 1) != 1)
		_exit(1);
	begun = used_ns();
	while (used_ns() - begun < 500000000u / LOW_RATE_HZ)
		continue;
	if (write(line->done[1], "", 1) != 1)
		_exit(1);
	scene_sleep(NULL);
}

/* @return the processor time that a process has used, as the kernel counts it. */
static uint64_t ran_ns(pid_t pid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(1, fscanf(file, "%llu", &ns));
	fclose(file);
	return ns;
}

/* Threads that live for less than a period have copies, as many as their time makes up together. */
static void meets_short_lives(void **state)
{
	pid_t pids[SHORT_LIVES];
	struct starting_line line;
	struct attach_sampler_plan *plan;
	struct scene scene;
	uint64_t used_before[SHORT_LIVES], used, whole = 0, least = 0;
	const uint64_t period_ns = 1000000000u / LOW_RATE_HZ;
	struct failure why;
	char byte;

	(void)state;
	assert_int_equal(0, pipe(line.go));
	assert_int_equal(0, pipe(line.done));
	scene_begin(&scene, LOW_RATE_HZ, scene_sleep, NULL);
	for (int i = 0; i < SHORT_LIVES; i++) {
		pids[i] = child_start(live_shortly, &line);
		/* What it begins with is no part of its time. */
		assert_true(child_await_state(pids[i], "S"));
		assert_int_equal(0, attach_sampler_add(scene.sampler, pids[i], pids[i], &scene,
						       &scene_nothing.head, &plan, &why));
	}
	for (int i = 0; i < SHORT_LIVES; i++)
		used_before[i] = ran_ns(pids[i]);
	for (int i = 0; i < SHORT_LIVES; i++) {
		struct pollfd done = { .fd = line.done[0], .events = POLLIN };

		assert_int_equal(1, write(line.go[1], "", 1));
		assert_int_equal(1, poll(&done, 1, CHILD_DEADLINE_MS));
		assert_int_equal(1, read(line.done[0], &byte, 1));
		attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	}
	/* Half of them, and what a slow machine takes besides. A machine whose processor is taken
	 * away for several periods counts them all as the thread's, and ticks once. */
	for (int i = 0; i < SHORT_LIVES; i++) {
		used = ran_ns(pids[i]) - used_before[i];
		whole += used;
		least += used < period_ns ? used : period_ns;
	}
	assert_in_range(whole / period_ns, SHORT_LIVES / 2, 2 * SHORT_LIVES);
	/* More than four standard deviations. */
	assert_in_range(scene.count, least / period_ns - 17, whole / period_ns + 17);
	for (int i = 0; i < SHORT_LIVES; i++)
		child_end(pids[i]);
	for (int i = 0; i < 2; i++) {
		close(line.go[i]);
		close(line.done[i]);
	}
	scene_end(&scene);
}

static void has_a_bound_of_threads(void **state)
{
	const struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };
	struct attach_sampler_plan *plans[ATTACH_SAMPLER_THREADS];
	struct attach_sampler_plan *last;
	struct scene scene;
	struct failure why;

	(void)state;
	setrlimit(RLIMIT_NOFILE, &limit);
	scene_begin(&scene, 1, scene_sleep, NULL);
	plans[0] = &scene.plan->head;
	for (int i = 1; i < ATTACH_SAMPLER_THREADS; i++)
		assert_int_equal(0, attach_sampler_add(scene.sampler, scene.pid, scene.pid, &scene,
						       &scene_nothing.head, &plans[i], &why));
	assert_int_equal(1024, ATTACH_SAMPLER_THREADS); /* as the manual page says */
	assert_int_equal(-1, attach_sampler_add(scene.sampler, scene.pid, scene.pid, &scene,
						&scene_nothing.head, &last, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	attach_sampler_remove(scene.sampler, plans[500]);
	assert_int_equal(0, attach_sampler_add(scene.sampler, scene.pid, scene.pid, &scene,
					       &scene_nothing.head, &last, &why));
	assert_ptr_equal(plans[500], last);
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_program),
		cmocka_unit_test(rests),
		cmocka_unit_test(makes_no_copies_behind_its_end),
		cmocka_unit_test(leaves_sleepers_alone),
		cmocka_unit_test(counts_what_has_no_room),
		cmocka_unit_test(leaves_the_rest_for_later),
		cmocka_unit_test(forgets_a_thread),
		cmocka_unit_test(tells_of_threads_that_are_gone),
		cmocka_unit_test(meets_short_lives),
		cmocka_unit_test(has_a_bound_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
