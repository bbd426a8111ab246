/* SPDX-License-Identifier: MIT */
/*
 * Which sample has a waiting thread, in wall-clock mode?
 *
 * The stack of a sleeping thread does not change, so one decoding per sleep is enough. At each tick
 * the kernel says whether it is still the same sleep.
 */
#include "attach/array.h"
#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/tick/tick.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* A wait with a partial chain is decoded at this many ticks in a row, then at intervals. */
	DECODES_MAX = 3,
	PARTIAL_NS = 100 * 1000 * 1000,
};

static struct sampled_wait *wait_of(struct sampled_thread *data)
{
	if (!data->wait)
		data->wait = calloc(1, sizeof(*data->wait));
	return data->wait;
}

static bool copy_sample(struct sampled_wait *wait, const struct format_sample *sample)
{
	if (!ARRAY_RESERVE(wait->frames, wait->size, sample->frame_count))
		return false;
	wait->sample = *sample;
	if (sample->frame_count)
		memcpy(wait->frames, sample->frames, sample->frame_count * sizeof(*wait->frames));
	if (sample->coroutine_count)
		memcpy(wait->coroutines, sample->coroutines,
		       sample->coroutine_count * sizeof(*wait->coroutines));
	wait->sample.frames = wait->frames;
	wait->sample.coroutines = wait->coroutines;
	return true;
}

/* We may learn later what a chain lacks: a VM, or a library. A full chain stays valid until another
 * interpreter is known, see code_ns. */
static uint64_t end_of(const struct sampled_wait *wait, enum daemon_outcome outcome)
{
	if (daemon_outcome_reaches_root(outcome))
		return UINT64_MAX;
	return wait->decodes < DECODES_MAX ? 0 : clock_now_ns() + PARTIAL_NS;
}

void wait_keep(const struct recorder_target *of, struct sampled_thread *data,
	       const struct attach_sleep *sleep, const struct format_sample *sample,
	       enum daemon_outcome outcome)
{
	struct sampled_wait *wait = wait_of(data);

	if (!wait)
		return; /* each tick decodes it again */
	wait->decodes = wait->sleep.runs == sleep->runs ? wait->decodes + 1 : 0;
	wait->sleep = *sleep;
	wait->announcement = of->target->announcement;
	wait->generation = of->target->generation;
	wait->code_ns = of->target->code_ns;
	wait->until_ns = copy_sample(wait, sample) ? end_of(wait, outcome) : 0;
}

bool wait_goes_on(struct recorder_target *of, const struct attach_thread *thread,
		  struct sampled_thread *data)
{
	struct sampled_wait *wait = data->wait;

	if (!wait || clock_now_ns() >= wait->until_ns ||
	    wait->announcement != of->target->announcement ||
	    wait->generation != of->target->generation || wait->code_ns != of->target->code_ns ||
	    !attach_thread_sleeps_on(thread, &wait->sleep))
		return false;
	wait->sample.time_ns = clock_now_ns();
	wait->sample.weight = sampled_report(of, data, DAEMON_ASLEEP);
	sampled_put(of, &wait->sample);
	return true;
}

void wait_free(struct sampled_thread *data)
{
	if (data->wait)
		free(data->wait->frames);
	free(data->wait);
	data->wait = NULL;
}
