/* SPDX-License-Identifier: MIT */
/* How does each tick of each thread get exactly one outcome? */
#include "daemon/outcome/outcomes.h"
#include "attach/clock.h"

#include <stdlib.h>

enum {
	/* Most deferred ticks of a thread that sleeps or wakes within microseconds, again and
	 * again. */
	DEFERRED_MAX = 8,
	/* Most ticks that wait for a later sample: the most that may be missing at one time. */
	UNSCHEDULED_MAX = 1024,
	/* Largest weight of a sample whose thread's processor time is known. */
	WEIGHT_MAX = 16,
	/* Samples and processor time may differ by this many ticks through statistical error. */
	CHANCE_TICKS = 4,
	/* A name is read again after this time. */
	NAME_NS = 1000 * 1000 * 1000,
};

struct sampled_thread *sampled_of(struct attach_thread *thread)
{
	if (!thread->data)
		thread->data = calloc(1, sizeof(struct sampled_thread));
	return thread->data;
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

uint32_t sampled_report(struct recorder_target *of, struct sampled_thread *data,
			enum daemon_outcome outcome)
{
	uint32_t ticks = take(&data->pending);

	switch (outcome) {
	case DAEMON_FULL:
	case DAEMON_INCONSISTENT:
	case DAEMON_TRUNCATED:
	case DAEMON_UNWOUND:
	case DAEMON_NO_VM:
		ticks += take(&data->deferred_run);
		break;
	case DAEMON_ASLEEP:
		ticks += take(&data->deferred_sleep);
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

void sampled_defer(struct recorder_target *of, struct sampled_thread *data, bool is_asleep)
{
	uint32_t *deferred = is_asleep ? &data->deferred_sleep : &data->deferred_run;
	uint32_t ticks = take(&data->pending);

	if (*deferred + ticks <= DEFERRED_MAX)
		*deferred += ticks;
	else
		add(of, DAEMON_IDLE, ticks);
}

void sampled_note_unscheduled(struct recorder_target *of, struct sampled_thread *data)
{
	data->unscheduled += take(&data->pending);
	if (data->unscheduled > UNSCHEDULED_MAX) {
		add(of, DAEMON_UNSCHEDULED, data->unscheduled - UNSCHEDULED_MAX);
		data->unscheduled = UNSCHEDULED_MAX;
	}
}

/* How many ticks a sample represents. The thread ran at most at @p ticks ticks, and may have run at
 * @p unscheduled more. @param used Processor time without a sample so far, in ticks. */
static int64_t weight_of(int64_t ticks, int64_t unscheduled, int64_t used)
{
	int64_t weight = ticks;

	if (ticks > used + CHANCE_TICKS) /* it did not run at all of these ticks */
		weight = used + CHANCE_TICKS > 0 ? used + CHANCE_TICKS : 0;
	else if (used > ticks + CHANCE_TICKS)
		weight = used;
	/* Later samples represent the rest, because one sample shows only one location. */
	if (weight > WEIGHT_MAX)
		weight = WEIGHT_MAX;
	return weight < ticks + unscheduled ? weight : ticks + unscheduled;
}

bool sampled_weigh(struct recorder_target *of, struct sampled_thread *data, uint64_t ran_ns)
{
	int64_t period_ns = 1000000000 / (int64_t)of->recorder->options->rate_hz;
	int64_t bound_ns = UNSCHEDULED_MAX * period_ns, weight;
	uint64_t before_ns = data->ran_ns;

	data->ran_ns = ran_ns;
	/* A decrease means that another thread now has this tid. */
	if (!ran_ns || !before_ns || ran_ns < before_ns)
		return true;
	data->unsampled_ns += (int64_t)(ran_ns - before_ns);
	weight = weight_of((int64_t)data->pending + data->deferred_run, data->unscheduled,
			   data->unsampled_ns / period_ns);
	data->unsampled_ns -= weight * period_ns;
	if (data->unsampled_ns > bound_ns)
		data->unsampled_ns = bound_ns;
	if (data->unsampled_ns < -bound_ns)
		data->unsampled_ns = -bound_ns;
	data->unscheduled += take(&data->pending) + take(&data->deferred_run) - (uint32_t)weight;
	data->pending = (uint32_t)weight;
	return weight > 0;
}

void sampled_forget_time(struct recorder_target *of, struct sampled_thread *data)
{
	data->ran_ns = 0;
	data->unsampled_ns = 0;
	add(of, DAEMON_UNSCHEDULED, take(&data->unscheduled));
}

void sampled_end(struct recorder_target *of, struct sampled_thread *data,
		 enum daemon_outcome outcome)
{
	add(of, DAEMON_IDLE, take(&data->deferred_run) + take(&data->deferred_sleep));
	add(of, DAEMON_UNSCHEDULED, take(&data->unscheduled));
	add(of, outcome, take(&data->pending));
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
		stats->first_sample_ns = clock_now_ns() - recorder->begin_ns;
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
