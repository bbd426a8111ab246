/* SPDX-License-Identifier: MIT */
/* What does a recording copy in a stop? The same as in the kernel, by the same plan. */
#include "daemon/tick/stop_copy.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/hash.h"
#include "luastate/plan.h"

enum {
	/* A copy takes some microseconds. One that takes longer lost its processor, or reads pages
	 * that are slow to come. */
	BUDGET_NS = 5 * 1000 * 1000,
};

struct stop_copier {
	struct luastate_copier *rules;
	struct attach_fetcher *fetcher;
	uint64_t known[LUASTATE_BPF_KNOWN];
	const struct luastate_bpf_plan *plan; /* of the current stop */
	struct luastate_plan_context context;
};

/** What a thread's stops have taught. */
struct stop_plan {
	struct luastate_bpf_plan plan;
	struct attach_pieces pieces;
};

int stop_copier_create(struct stop_copier **ret_copier, struct failure *why)
{
	struct stop_copier *copier = calloc(1, sizeof(*copier));

	if (!copier)
		return failure_set_errno(why, ENOMEM, 0, "stop threads");
	if (luastate_copier_create(&copier->rules, why) != 0 ||
	    attach_fetcher_create(&copier->fetcher, why) != 0) {
		stop_copier_destroy(copier);
		return -1;
	}
	*ret_copier = copier;
	return 0;
}

void stop_copier_destroy(struct stop_copier *copier)
{
	if (!copier)
		return;
	luastate_copier_destroy(copier->rules);
	attach_fetcher_destroy(copier->fetcher);
	free(copier);
}

static void copy(void *context, const struct attach_registers *registers,
		 struct attach_fetcher *fetcher)
{
	struct stop_copier *copier = context;

	luastate_copier_run(copier->rules, copier->plan, copier->known, registers, fetcher);
}

int stop_copy_plan(struct stop_copier *copier, const struct recorder_target *of,
		   const struct attach_thread *thread, struct sampled_thread *data, bool is_pending,
		   struct attach_planner *ret_planner, struct failure *why)
{
	struct stop_plan *stop = data->stop_plan;

	copier->context.state = of->target->lua;
	copier->context.prediction = &data->prediction;
	copier->context.stack_limit = thread->stack_limit;
	if (!stop) {
		stop = data->stop_plan = calloc(1, sizeof(*stop));
		if (!stop)
			return failure_set_errno(why, ENOMEM, of->pid, "stop threads");
		stop->plan.salt = hash_spread((uint64_t)of->pid) | 1;
		stop->plan.head.budget_ns = BUDGET_NS;
		is_pending = false;
	}
	if (!is_pending)
		luastate_plan_bpf(&copier->context, &stop->plan);
	copier->plan = &stop->plan;
	*ret_planner = (struct attach_planner){
		.copy = copy, .fetcher = copier->fetcher, .pieces = &stop->pieces, .context = copier
	};
	return 0;
}

void stop_copy_take(struct stop_copier *copier, const struct recorder_target *of,
		    struct sampled_thread *data, struct attach_image *image,
		    struct attach_image *after)
{
	struct failure why;

	of->recorder->stats->late_copies += luastate_copier_is_late(copier->rules);
	luastate_copier_take(copier->rules, image); /* what is not there is noted as lacking */
	attach_image_order(image);
	luastate_plan_copied(&copier->context, image, &data->stop_plan->plan);
	attach_image_clear(after);
	luastate_plan_after(&copier->context, image, after);
	attach_process_fetch(of->process, after, &why);
}

void stop_copy_learn(struct stop_copier *copier, const struct recorder_target *of,
		     const struct sampled_thread *data)
{
	if (of->target && data->stop_plan)
		luastate_note_known(&copier->context, &of->target->chain,
				    data->stop_plan->plan.salt, copier->known);
}

void stop_copy_forget(struct sampled_thread *data)
{
	free(data->stop_plan);
	data->stop_plan = NULL;
}
