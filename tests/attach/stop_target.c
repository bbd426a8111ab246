/* SPDX-License-Identifier: MIT */
#include "stop_target.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "children.h"

void capture_open(struct stop_target *target, pid_t pid)
{
	*target = (struct stop_target){ .pid = pid, .thread = { .tid = pid, .syscall_fd = -1 } };
	assert_int_equal(0, attach_process_open(pid, &target->process, &target->why));
	target->image = attach_image_create();
	assert_non_null(target->image);
}

void capture_close(struct stop_target *target)
{
	attach_image_destroy(target->image);
	attach_process_close(target->process);
}

int capture_run(struct stop_target *target, bool (*plan)(void *, struct attach_image *, unsigned),
		void *context)
{
	const struct attach_planner planner = { .plan = plan,
						.context = context,
						.rehearses = target->rehearses };

	return attach_capture(target->process, &target->thread, &planner, target->image,
			      &target->timing, &target->why);
}

void capture_settle(struct attach_thread *thread)
{
	CHILD_AWAIT(attach_thread_settle(thread) == 0);
	assert_int_equal(0, attach_thread_settle(thread));
}

int capture_retry(struct stop_target *target, bool (*plan)(void *, struct attach_image *, unsigned),
		  void *context)
{
	int ret = capture_run(target, plan, context);

	for (int i = 0; i < TIMEOUTS_MAX && ret != 0 && target->why.kind == FAILURE_TIMEOUT; i++) {
		capture_settle(&target->thread);
		ret = capture_run(target, plan, context);
	}
	return ret;
}

void capture_expect(struct stop_target *target,
		    bool (*plan)(void *, struct attach_image *, unsigned), void *context)
{
	char text[200];

	if (capture_retry(target, plan, context) != 0) {
		failure_describe(&target->why, text, sizeof(text));
		fail_msg("%s", text);
	}
}

bool capture_plan_nothing(void *context, struct attach_image *image, unsigned round)
{
	(void)context;
	(void)image;
	(void)round;
	return false;
}

pid_t capture_start_spinning(volatile uint64_t **ret_counter)
{
	uint64_t *counter = child_share(sizeof(*counter));
	pid_t pid = child_start(child_spin, counter);

	assert_true(child_await(counter, 1));
	*ret_counter = counter;
	return pid;
}

void capture_expect_untouched(pid_t pid, const volatile uint64_t *counter)
{
	assert_true(child_is_free(pid));
	assert_true(child_await(counter, *counter + 1));
}

bool capture_plan_signal(void *context, struct attach_image *image, unsigned round)
{
	const struct capture_signal *signal = context;

	(void)image;
	(void)round;
	kill(signal->pid, signal->number);
	return false;
}
