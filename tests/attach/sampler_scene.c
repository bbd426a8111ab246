/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/freeze.h"
#include "children.h"
#include "sampler_scene.h"

/* A machine that is emulated, or held up, may need more time than others have. */
const struct luastate_bpf_plan scene_nothing = { .head.budget_ns = UINT32_MAX };

/* The sanitizer would have the marks elsewhere. */
__attribute__((no_sanitize("address"))) void scene_spin(void *argument)
{
	const struct scene_memory *memory = argument;
	volatile uint64_t marks[SCENE_MARKS];

	for (size_t i = 0; memory && i < memory->len; i += ATTACH_PAGE_BYTES)
		(void)((const volatile uint8_t *)memory->start)[i];
	for (int i = 0; i < SCENE_MARKS; i++)
		marks[i] = SCENE_MARK + (uint64_t)i;
	while (marks[0] == SCENE_MARK)
		marks[1] = SCENE_MARK + 1;
}

void scene_sleep(void *argument)
{
	(void)argument;
	for (;;)
		pause();
}

int scene_add(struct scene *scene, const struct luastate_bpf_plan *first, struct failure *why)
{
	struct attach_sampler_plan *head;

	if (attach_sampler_add(scene->sampler, scene->pid, scene->pid, scene, &first->head, &head,
			       why) != 0)
		return -1;
	scene->plan = (struct luastate_bpf_plan *)head;
	return 0;
}

void scene_begin(struct scene *scene, unsigned rate_hz, void (*run)(void *), void *argument)
{
	const struct attach_sampler_object object = luastate_bpf_object();
	struct failure why;
	char text[256];

	memset(scene, 0, sizeof(*scene));
	if (attach_sampler_create(&object, rate_hz, &scene->sampler, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		print_message("skipped: %s\n", text);
		skip();
	}
	scene->pid = child_start(run, argument);
	scene->image = attach_image_create();
	assert_non_null(scene->image);
	assert_int_equal(0, attach_sampler_begin(scene->sampler, NULL, &why));
	assert_int_equal(0, scene_add(scene, &scene_nothing, &why));
}

void scene_end(struct scene *scene)
{
	child_end(scene->pid);
	attach_image_destroy(scene->image);
	attach_sampler_destroy(scene->sampler);
}

bool scene_take(void *context, void *thread, const struct attach_sampler_timing *timing)
{
	struct scene *scene = thread;

	assert_ptr_equal(context, scene);
	assert_true(timing->time_ns >= scene->last_ns);
	assert_true(timing->took_ns < 1000000000u);
	scene->last_ns = timing->time_ns;
	if (timing->time_ns < scene->since_ns)
		return true;
	scene->count++;
	scene->cut_count += timing->is_truncated;
	scene->late_count += timing->is_late;
	return !scene->check || scene->check(scene);
}

void scene_watch(struct scene *scene, bool (*check)(struct scene *scene))
{
	scene->since_ns = child_now_ns();
	scene->count = scene->cut_count = scene->late_count = 0;
	scene->check = check;
}

void scene_await(struct scene *scene, uint64_t count)
{
	for (int i = 0; i < SCENE_PATIENCE_S * 100 && scene->count < count; i++) {
		child_nap_us(10 * 1000);
		attach_sampler_drain(scene->sampler, scene->image, scene_take, scene);
	}
	assert_true(scene->count >= count);
}
