/* SPDX-License-Identifier: MIT */
/* Accounting: each tick of each thread has one outcome, and all outcomes together are the ticks. */
#include "daemon/sampled.h"

#include <stdlib.h>

enum {
	/* Ticks of threads that sleep or wake within microseconds, again and again. */
	CARRIED_MAX = 8,
	/* A name is read again after so long. */
	NAME_NS = 1000 * 1000 * 1000,
};

struct sampled_thread *sampled_of(struct attach_thread *thread)
{
	if (!thread->data)
		thread->data = calloc(1, sizeof(struct sampled_thread));
	return thread->data;
}

void sampled_forget(void *context, struct attach_thread *thread)
{
	struct sampled_thread *data = thread->data;

	if (!data)
		return;
	tapped_end_thread(context, data);
	sampled_end(context, data, DAEMON_EXITED);
	wait_free(data);
	free(data);
	thread->data = NULL;
}

static void add(struct recorder_target *of, enum daemon_outcome outcome, uint32_t ticks)
{
	struct daemon_process *listed = recorder_listed(of->recorder, of);

	of->recorder->stats->outcomes[outcome] += ticks;
	if (listed)
		listed->outcomes[outcome] += ticks;
}

static uint32_t take(uint32_t *ticks)
{
	uint32_t taken = *ticks;

	*ticks = 0;
	return taken;
}

uint32_t sampled_tell(struct recorder_target *of, struct sampled_thread *data,
		      enum daemon_outcome outcome)
{
	uint32_t ticks = take(&data->owed);

	switch (outcome) {
	case DAEMON_FULL:
	case DAEMON_TORN:
	case DAEMON_TRUNCATED:
	case DAEMON_UNWOUND:
	case DAEMON_NO_VM:
		ticks += take(&data->carried_run);
		break;
	case DAEMON_ASLEEP:
		ticks += take(&data->carried_sleep);
		break;
	default:
		break;
	}
	add(of, outcome, ticks);
	return ticks;
}

const char *sampled_name(const struct recorder_target *of, const struct attach_thread *thread,
			 struct sampled_thread *data, uint64_t now_ns)
{
	if (!data->name_ns || now_ns - data->name_ns >= NAME_NS) {
		data->name_ns = now_ns;
		attach_thread_name(of->process, thread->tid, data->name, sizeof(data->name));
	}
	return data->name;
}

void sampled_carry(struct recorder_target *of, struct sampled_thread *data, bool is_asleep)
{
	uint32_t *carried = is_asleep ? &data->carried_sleep : &data->carried_run;
	uint32_t ticks = take(&data->owed);

	if (*carried + ticks <= CARRIED_MAX)
		*carried += ticks;
	else
		add(of, DAEMON_IDLE, ticks);
}

void sampled_end(struct recorder_target *of, struct sampled_thread *data,
		 enum daemon_outcome outcome)
{
	add(of, DAEMON_IDLE, take(&data->carried_run) + take(&data->carried_sleep));
	add(of, outcome, take(&data->owed));
}

bool sampled_put(struct recorder_target *of, const struct format_sample *sample)
{
	struct recorder *recorder = of->recorder;
	struct daemon_process *listed = recorder_listed(recorder, of);
	struct daemon_stats *stats = recorder->stats;
	struct failure why;

	if (recorder_put_sample(recorder, sample, &why) != 0) {
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return false;
	}
	if (stats->samples == 0)
		stats->first_sample_ns = daemon_now_ns() - recorder->begin_ns;
	stats->samples += sample->weight;
	stats->records++;
	if (sample->is_asleep)
		stats->asleep_full += sample->full ? sample->weight : 0;
	else
		stats->states[sample->state] += sample->weight;
	stats->frames += (uint64_t)sample->frame_count * sample->weight;
	traces_count(&recorder->traces, stats, sample, of->target->chain.trace_function);
	if (listed)
		listed->samples += sample->weight;
	return true;
}
