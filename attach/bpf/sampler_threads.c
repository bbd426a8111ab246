/* SPDX-License-Identifier: MIT */
/* Threads that the kernel copies: an event for each, which we open or have opened.
 *
 * Source: perf_event_open(2), bpf(2); libbpf 1.1, libbpf.h; Linux v6.1, kernel/events/core.c
 * (__perf_event_account_interrupt), for how often the kernel lets it.
 */
#include "attach/bpf/sampler_internal.h"
#include "attach/clock.h"
#include "attach/failure.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* The kernel may hold an opener up for as long as a target's exec takes. */
	ASKED_NS = 1000 * 1000 * 1000,
	/* Interrupts wait meanwhile. A copy of 60 coroutines takes 50 us on an idle machine, and
	 * several times that on a busy one. */
	BUDGET_NS = 1000 * 1000,
};

_Static_assert(ATTACH_TAP_THREADS == 1024, "its failure and the manual page say so");

static struct tap_slot *free_slot(struct attach_tap *tap)
{
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++) {
		struct tap_slot *slot = &tap->slots[(tap->next + i) % ATTACH_TAP_THREADS];

		if (slot->used)
			continue;
		tap->next = (tap->next + i + 1) % ATTACH_TAP_THREADS;
		return slot;
	}
	return NULL;
}

static int open_timer(pid_t tid, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int attach_tap_open_event(int program_fd, const struct attach_tap_request *request,
			  struct attach_tap_event *ret_event, struct failure *why)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = request->cookie);
	struct attach_tap_event event = { .link_fd = -1 };
	int errnum;

	event.event_fd = open_timer(request->tid, request->period_ns);
	if (event.event_fd < 0)
		return failure_set_errno(why, errno, request->tid, "count the thread's time");
	event.link_fd = bpf_link_create(program_fd, event.event_fd, BPF_PERF_EVENT, &options);
	if (event.link_fd >= 0) {
		*ret_event = event;
		return 0;
	}
	errnum = errno;
	close(event.event_fd);
	return failure_set_errno(why, errnum, request->tid, "sample the thread");
}

void attach_tap_close_event(const struct attach_tap_event *event)
{
	if (event->link_fd >= 0)
		close(event->link_fd);
	if (event->event_fd >= 0)
		close(event->event_fd);
}

static int enable(const struct attach_tap_event *event, pid_t tid, struct failure *why)
{
	int errnum;

	if (ioctl(event->event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return 0;
	errnum = errno;
	attach_tap_close_event(event);
	return failure_set_errno(why, errnum, tid, "begin to count the thread's time");
}

/* Have the program run at each tick of the thread from now on, or once the opener answers. */
static int begin_event(struct attach_tap *tap, const struct attach_tap_request *request,
		       struct tap_slot *slot, struct failure *why)
{
	slot->event = (struct attach_tap_event){ .event_fd = -1, .link_fd = -1 };
	slot->asked_ns = 0;
	if (!tap->opener.ask)
		return attach_tap_open_event(attach_tap_program(tap), request, &slot->event, why) ||
				       enable(&slot->event, request->tid, why)
			       ? -1
			       : 0;
	if (tap->opener.ask(tap->opener.context, request, why) != 0)
		return -1;
	slot->asked_ns = clock_now_ns();
	tap->asked++;
	return 0;
}

static void end_event(struct attach_tap *tap, struct tap_slot *slot)
{
	tap->asked -= slot->asked_ns != 0;
	slot->asked_ns = 0;
	if (slot->event.event_fd >= 0)
		ioctl(slot->event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
	attach_tap_close_event(&slot->event);
}

int attach_tap_add(struct attach_tap *tap, pid_t pid, pid_t tid, void *context,
		   const struct attach_tap_plan *first, struct attach_tap_plan **ret_plan,
		   struct failure *why)
{
	struct attach_tap_request request = { .pid = pid, .tid = tid };
	struct tap_slot *slot = free_slot(tap);
	struct attach_tap_plan *plan;
	size_t index;

	if (!slot)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "have the kernel copy more than 1024 threads");
	index = (size_t)(slot - tap->slots);
	request.cookie = (slot->generation + 1) * ATTACH_TAP_THREADS + index;
	plan = tap_plan_at(tap, index);
	*plan = *first;
	plan->rested = plan->lost = 0;
	plan->period_ns = tap->period_ns;
	if (!plan->budget_ns)
		plan->budget_ns = BUDGET_NS;
	plan->tick_ns = tap_first_period(tap);
	plan->passed_ns = tap->period_ns - plan->tick_ns;
	request.period_ns = plan->tick_ns;
	__atomic_store_n(&plan->cookie, request.cookie, __ATOMIC_RELEASE);
	if (begin_event(tap, &request, slot, why) != 0) {
		plan->cookie = 0;
		return -1;
	}
	slot->tid = tid;
	slot->generation++;
	slot->used = slot->is_first = true;
	slot->periods = 0;
	slot->context = context;
	*ret_plan = plan;
	return 0;
}

/* What is asked for no more, or had to be waited for too long, is closed. */
static void take_answer(struct attach_tap *tap, struct attach_tap_answer *answer,
			attach_tap_refused *refused, void *context)
{
	struct tap_slot *slot = tap_slot_of(tap, answer->cookie);

	if (!slot || !slot->asked_ns) {
		if (answer->why.kind == FAILURE_NONE)
			attach_tap_close_event(&answer->event);
		return;
	}
	slot->asked_ns = 0;
	tap->asked--;
	if (answer->why.kind == FAILURE_NONE &&
	    enable(&answer->event, slot->tid, &answer->why) == 0)
		slot->event = answer->event;
	else
		refused(context, slot->context, &answer->why);
}

/* @param end NULL: of those that have waited too long. */
static void refuse_asked(struct attach_tap *tap, const struct failure *end,
			 attach_tap_refused *refused, void *context)
{
	uint64_t time_ns = clock_now_ns();

	for (size_t i = 0; tap->asked && i < ATTACH_TAP_THREADS; i++) {
		struct tap_slot *slot = &tap->slots[i];
		struct failure why = end ? *end : (struct failure){ .kind = FAILURE_TIMEOUT };

		if (!slot->used || !slot->asked_ns || (!end && time_ns - slot->asked_ns < ASKED_NS))
			continue;
		why.tid = slot->tid;
		why.step = "have the opener of events open one";
		slot->asked_ns = 0;
		tap->asked--;
		refused(context, slot->context, &why);
	}
}

size_t attach_tap_take_events(struct attach_tap *tap, uint64_t until_ns,
			      attach_tap_refused *refused, void *context)
{
	struct attach_tap_answer answer;
	struct failure why;
	int got = 0;

	while (tap->asked > 0) {
		got = tap->opener.take(tap->opener.context, until_ns, &answer, &why);
		if (got <= 0)
			break;
		take_answer(tap, &answer, refused, context);
	}
	refuse_asked(tap, got < 0 ? &why : NULL, refused, context);
	return tap->asked;
}

void attach_tap_remove(struct attach_tap *tap, struct attach_tap_plan *plan)
{
	struct tap_slot *slot = tap_slot_of(tap, plan->cookie);

	if (!slot)
		return;
	plan->cookie = 0;
	end_event(tap, slot);
	slot->used = false;
}

void attach_tap_end(struct attach_tap *tap)
{
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++)
		if (tap->slots[i].used && tap->slots[i].event.event_fd >= 0)
			ioctl(tap->slots[i].event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
}

int tap_try_event(struct attach_tap *tap, struct failure *why)
{
	const struct attach_tap_request own = { .period_ns = tap->period_ns,
						.cookie = ATTACH_TAP_NO_COOKIE };
	struct tap_slot slot = { 0 };

	if (begin_event(tap, &own, &slot, why) != 0)
		return -1;
	end_event(tap, &slot);
	return 0;
}

void tap_end_events(struct attach_tap *tap)
{
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++)
		if (tap->slots[i].used)
			end_event(tap, &tap->slots[i]);
}
