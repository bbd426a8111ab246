/* SPDX-License-Identifier: MIT */
/* Events that another process opens for the copies of threads: late, never, and for whom there is
 * none any more. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/failure.h"
#include "children.h"
#include "sampler_scene.h"

/** An opener that answers on request. */
struct slow_opener {
	struct attach_sampler *sampler;
	struct attach_sampler_request request;
	unsigned asked;
	bool is_full, is_ready, is_gone;
	struct attach_sampler_event event; /* the last one that it gave away */
	struct failure refused;		   /* of the last thread that was */
	void *refused_thread;
};

static int slow_ask(void *context, const struct attach_sampler_request *request,
		    struct failure *why)
{
	struct slow_opener *opener = context;

	if (opener->is_full)
		return failure_set(why, FAILURE_TIMEOUT, 0, request->tid, 0, "ask");
	opener->request = *request;
	opener->asked++;
	return 0;
}

static int slow_take(void *context, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		     struct failure *why)
{
	struct slow_opener *opener = context;

	(void)until_ns;
	if (opener->is_gone)
		return failure_set(why, FAILURE_SYSTEM, 0, 0, 0, "take");
	if (!opener->is_ready || !opener->asked)
		return 0;
	opener->asked--;
	*ret_answer = (struct attach_sampler_answer){ .cookie = opener->request.cookie,
						      .event = { -1, -1 } };
	if (attach_sampler_open_event(attach_sampler_program(opener->sampler), &opener->request,
				      &ret_answer->event, &ret_answer->why) == 0)
		opener->event = ret_answer->event;
	return 1;
}

static void note_refused(void *context, void *thread, const struct failure *why)
{
	struct slow_opener *opener = context;

	opener->refused = *why;
	opener->refused_thread = thread;
}

static void begin(struct scene *scene, struct slow_opener *opener)
{
	const struct attach_sampler_opener slow = { .ask = slow_ask,
						    .take = slow_take,
						    .context = opener };
	const struct attach_sampler_object object = luastate_bpf_object();
	struct failure why;

	memset(scene, 0, sizeof(*scene));
	memset(opener, 0, sizeof(*opener));
	if (attach_sampler_create(&object, SCENE_RATE_HZ, &scene->sampler, &why) != 0)
		skip();
	opener->sampler = scene->sampler;
	scene->pid = child_start(scene_spin, NULL);
	scene->image = attach_image_create();
	assert_non_null(scene->image);
	assert_int_equal(0, attach_sampler_begin(scene->sampler, &slow, &why));
}

static int add_slow(struct scene *scene, struct failure *why)
{
	static const struct luastate_bpf_plan none;

	return scene_add(scene, &none, why);
}

static size_t take_events(struct scene *scene, struct slow_opener *opener)
{
	return attach_sampler_take_events(scene->sampler, 0, note_refused, opener);
}

static void copies_begin_with_the_answer(void **state)
{
	struct slow_opener opener;
	struct scene scene;
	struct failure why;

	(void)state;
	begin(&scene, &opener);
	assert_int_equal(0, take_events(&scene, &opener));
	opener.is_full = true;
	assert_int_equal(-1, add_slow(&scene, &why));
	assert_int_equal(FAILURE_TIMEOUT, why.kind);
	assert_int_equal(0, take_events(&scene, &opener));
	opener.is_full = false;
	assert_int_equal(0, add_slow(&scene, &why));
	/* A processor's interrupts may have to wait that long. */
	assert_in_range(scene.plan->head.budget_ns, 500 * 1000, 1000 * 1000);
	assert_int_equal(1, take_events(&scene, &opener));
	child_nap_us(20 * 1000);
	attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	assert_int_equal(0, scene.count);
	opener.is_ready = true;
	assert_int_equal(0, take_events(&scene, &opener));
	scene_await(&scene, 20);
	assert_null(opener.refused_thread);
	attach_sampler_remove(scene.sampler, &scene.plan->head);
	scene_end(&scene);
}

static void closes_events_that_come_too_late(void **state)
{
	struct attach_sampler_request late;
	struct slow_opener opener;
	struct scene scene;
	struct failure why;

	(void)state;
	begin(&scene, &opener);
	assert_int_equal(0, add_slow(&scene, &why));
	attach_sampler_remove(scene.sampler, &scene.plan->head);
	opener.is_ready = true;
	/* With the next one's. */
	assert_int_equal(0, take_events(&scene, &opener));
	late = opener.request;
	assert_int_equal(0, add_slow(&scene, &why));
	opener.request = late;
	opener.asked = 1;
	assert_int_equal(1, take_events(&scene, &opener));
	assert_int_equal(-1, fcntl(opener.event.event_fd, F_GETFD));
	assert_int_equal(-1, fcntl(opener.event.link_fd, F_GETFD));
	assert_null(opener.refused_thread);
	scene_end(&scene);
}

static void tells_whom_an_opener_refuses(void **state)
{
	struct slow_opener opener;
	struct scene scene;
	struct failure why;

	(void)state;
	begin(&scene, &opener);
	assert_int_equal(0, add_slow(&scene, &why));
	/* The thread has ended. */
	child_end(scene.pid);
	opener.is_ready = true;
	assert_int_equal(0, take_events(&scene, &opener));
	assert_ptr_equal(&scene, opener.refused_thread);
	assert_int_equal(FAILURE_GONE, opener.refused.kind);
	attach_sampler_remove(scene.sampler, &scene.plan->head);
	/* The opener has. */
	scene.pid = child_start(scene_spin, NULL);
	assert_int_equal(0, add_slow(&scene, &why));
	opener.is_gone = true;
	assert_int_equal(0, take_events(&scene, &opener));
	assert_int_equal(FAILURE_SYSTEM, opener.refused.kind);
	assert_int_equal(scene.pid, opener.refused.tid);
	attach_sampler_remove(scene.sampler, &scene.plan->head);
	/* It does not come to it. */
	opener.is_gone = opener.is_ready = false;
	opener.refused_thread = NULL;
	assert_int_equal(0, add_slow(&scene, &why));
	assert_int_equal(1, take_events(&scene, &opener));
	assert_null(opener.refused_thread);
	for (int i = 0; i < SCENE_PATIENCE_S * 100 && take_events(&scene, &opener) > 0; i++)
		child_nap_us(10 * 1000);
	assert_ptr_equal(&scene, opener.refused_thread);
	assert_int_equal(FAILURE_TIMEOUT, opener.refused.kind);
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_begin_with_the_answer),
		cmocka_unit_test(closes_events_that_come_too_late),
		cmocka_unit_test(tells_whom_an_opener_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
