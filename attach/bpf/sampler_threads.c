/* SPDX-License-Identifier: MIT */
/* How does the sampler add and remove threads? Each has an event, which this process or an opener
 * opens.
 *
 * Source: perf_event_open(2), bpf(2); libbpf 1.1, libbpf.h; Linux v6.1, kernel/events/core.c
 * (__perf_event_account_interrupt), for the kernel's limit.
 */
#include "attach/bpf/sampler_internal.h"
#include "attach/clock.h"
#include "attach/failure.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* The kernel may block an opener for as long as a target's exec takes. */
	ASKED_NS = 1000 * 1000 * 1000,
	/* Interrupts wait during a copy. A copy of 60 stacks takes 50 us on an idle machine, and
	 * several times as long on a busy one. */
	BUDGET_NS = 1000 * 1000,
};

_Static_assert(ATTACH_SAMPLER_THREADS == 1024, "its failure and the manual page say so");

static struct sampler_slot *free_slot(struct attach_sampler *sampler)
{
	for (size_t i = 0; i < ATTACH_SAMPLER_THREADS; i++) {
		struct sampler_slot *slot =
			&sampler->slots[(sampler->next + i) % ATTACH_SAMPLER_THREADS];

		if (slot->used)
			continue;
		sampler->next = (sampler->next + i + 1) % ATTACH_SAMPLER_THREADS;
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

int attach_sampler_open_event(int program_fd, const struct attach_sampler_request *request,
			      struct attach_sampler_event *ret_event, struct failure *why)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = request->cookie);
	struct attach_sampler_event event = { .link_fd = -1 };
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

void attach_sampler_close_event(const struct attach_sampler_event *event)
{
	if (event->link_fd >= 0)
		close(event->link_fd);
	if (event->event_fd >= 0)
		close(event->event_fd);
}

static int enable(const struct attach_sampler_event *event, pid_t tid, struct failure *why)
{
	int errnum;

	if (ioctl(event->event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return 0;
	errnum = errno;
	attach_sampler_close_event(event);
	return failure_set_errno(why, errnum, tid, "begin to count the thread's time");
}

/* Run the program at each tick of the thread: at once, or after the opener's answer. */
static int begin_event(struct attach_sampler *sampler, const struct attach_sampler_request *request,
		       struct sampler_slot *slot, struct failure *why)
{
	slot->event = (struct attach_sampler_event){ .event_fd = -1, .link_fd = -1 };
	slot->asked_ns = 0;
	if (!sampler->opener.ask)
		return attach_sampler_open_event(attach_sampler_program(sampler), request,
						 &slot->event, why) ||
				       enable(&slot->event, request->tid, why)
			       ? -1
			       : 0;
	if (sampler->opener.ask(sampler->opener.context, request, why) != 0)
		return -1;
	slot->asked_ns = clock_now_ns();
	sampler->asked++;
	return 0;
}

static void end_event(struct attach_sampler *sampler, struct sampler_slot *slot)
{
	sampler->asked -= slot->asked_ns != 0;
	slot->asked_ns = 0;
	if (slot->event.event_fd >= 0)
		ioctl(slot->event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
	attach_sampler_close_event(&slot->event);
}

int attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
		       const struct attach_sampler_plan *first,
		       struct attach_sampler_plan **ret_plan, struct failure *why)
{
	struct attach_sampler_request request = { .pid = pid, .tid = tid };
	struct sampler_slot *slot = free_slot(sampler);
	struct attach_sampler_plan *plan;
	size_t index;

	if (!slot)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "have the kernel copy more than 1024 threads");
	index = (size_t)(slot - sampler->slots);
	request.cookie = (slot->generation + 1) * ATTACH_SAMPLER_THREADS + index;
	plan = sampler_plan_at(sampler, index);
	memcpy(plan, first, sampler->plan_bytes);
	plan->skipped = plan->lost = 0;
	plan->period_ns = sampler->period_ns;
	if (!plan->budget_ns)
		plan->budget_ns = BUDGET_NS;
	plan->tick_ns = sampler_first_period(sampler);
	plan->passed_ns = sampler->period_ns - plan->tick_ns;
	request.period_ns = plan->tick_ns;
	__atomic_store_n(&plan->cookie, request.cookie, __ATOMIC_RELEASE);
	if (begin_event(sampler, &request, slot, why) != 0) {
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

/* Close events whose request was cancelled or timed out. */
static void take_answer(struct attach_sampler *sampler, struct attach_sampler_answer *answer,
			attach_sampler_refused *refused, void *context)
{
	struct sampler_slot *slot = sampler_slot_of(sampler, answer->cookie);

	if (!slot || !slot->asked_ns) {
		if (answer->why.kind == FAILURE_NONE)
			attach_sampler_close_event(&answer->event);
		return;
	}
	slot->asked_ns = 0;
	sampler->asked--;
	if (answer->why.kind == FAILURE_NONE &&
	    enable(&answer->event, slot->tid, &answer->why) == 0)
		slot->event = answer->event;
	else
		refused(context, slot->context, &answer->why);
}

/* Refuse pending requests. @param end Why all of them fail; NULL: only those that waited too long
 * fail. */
static void refuse_asked(struct attach_sampler *sampler, const struct failure *end,
			 attach_sampler_refused *refused, void *context)
{
	uint64_t time_ns = clock_now_ns();

	for (size_t i = 0; sampler->asked && i < ATTACH_SAMPLER_THREADS; i++) {
		struct sampler_slot *slot = &sampler->slots[i];
		struct failure why = end ? *end : (struct failure){ .kind = FAILURE_TIMEOUT };

		if (!slot->used || !slot->asked_ns || (!end && time_ns - slot->asked_ns < ASKED_NS))
			continue;
		why.tid = slot->tid;
		why.step = "ask the opener for an event";
		slot->asked_ns = 0;
		sampler->asked--;
		refused(context, slot->context, &why);
	}
}

size_t attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
				  attach_sampler_refused *refused, void *context)
{
	struct attach_sampler_answer answer;
	struct failure why;
	int got = 0;

	while (sampler->asked > 0) {
		got = sampler->opener.take(sampler->opener.context, until_ns, &answer, &why);
		if (got <= 0)
			break;
		take_answer(sampler, &answer, refused, context);
	}
	refuse_asked(sampler, got < 0 ? &why : NULL, refused, context);
	return sampler->asked;
}

void attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan)
{
	struct sampler_slot *slot = sampler_slot_of(sampler, plan->cookie);

	if (!slot)
		return;
	plan->cookie = 0;
	end_event(sampler, slot);
	slot->used = false;
}

void attach_sampler_end(struct attach_sampler *sampler)
{
	for (size_t i = 0; i < ATTACH_SAMPLER_THREADS; i++)
		if (sampler->slots[i].used && sampler->slots[i].event.event_fd >= 0)
			ioctl(sampler->slots[i].event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
}

int sampler_try_event(struct attach_sampler *sampler, struct failure *why)
{
	const struct attach_sampler_request own = { .period_ns = sampler->period_ns,
						    .cookie = ATTACH_SAMPLER_NO_COOKIE };
	struct sampler_slot slot = { 0 };

	if (begin_event(sampler, &own, &slot, why) != 0)
		return -1;
	end_event(sampler, &slot);
	return 0;
}

void sampler_end_events(struct attach_sampler *sampler)
{
	for (size_t i = 0; i < ATTACH_SAMPLER_THREADS; i++)
		if (sampler->slots[i].used)
			end_event(sampler, &sampler->slots[i]);
}
