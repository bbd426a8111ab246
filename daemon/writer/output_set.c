/* SPDX-License-Identifier: MIT */
/* How does each sample get into all outputs, and when do series begin new files? */
#include "daemon/writer/output_set.h"
#include "attach/clock.h"

#include <time.h>

#include "daemon/tick_clock.h"

/* The recorder ends the recording if an output has failed; until then the others continue. */
static void note_failure(struct output_set *set)
{
	atomic_store(&set->progress->failed, true);
}

/* Report the largest output's size, for a recording with a limit of bytes. */
static void tell_bytes(struct output_set *set)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < set->count; i++)
		if (output_bytes(&set->outputs[i]) > largest)
			largest = output_bytes(&set->outputs[i]);
	atomic_store(&set->progress->largest_bytes, largest);
}

void output_set_commit(struct output_set *set)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (output_commit(&set->outputs[i], &why) != 0)
			note_failure(set);
	tell_bytes(set);
}

void output_set_notes(struct output_set *set, const char *text)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (output_notes(&set->outputs[i], text, &why) != 0)
			note_failure(set);
}

void output_set_finish(struct output_set *set, bool is_empty_too)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (output_finish(&set->outputs[i], is_empty_too, &why) != 0)
			note_failure(set);
	tell_bytes(set);
}

void output_set_begin(struct output_set *set)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (output_begin(&set->outputs[i], &why) != 0)
			note_failure(set);
}

/* Rotate between two samples, so that each is in one file. */
static void rotate(struct output_set *set, uint64_t begin_ns)
{
	struct format_options *options = &set->shared.options;
	struct timespec now;
	uint64_t age_ns;

	output_set_finish(set, false);
	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = clock_now_ns() - begin_ns;
	options->start_ns = begin_ns;
	options->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - age_ns;
	set->rotate_at_ns = begin_ns + set->rotate_ns;
	output_set_begin(set);
}

void output_set_rotate_at(struct output_set *set, uint64_t time_ns)
{
	uint64_t over_ns;

	if (!set->rotate_ns || time_ns < set->rotate_at_ns)
		return;
	over_ns = (time_ns - set->rotate_at_ns) % set->rotate_ns;
	rotate(set, time_ns - over_ns);
}

void output_set_snapshot(struct output_set *set, uint64_t time_ns)
{
	struct failure why;

	if (set->rotate_ns) {
		rotate(set, time_ns);
		return;
	}
	for (size_t i = 0; i < set->count; i++)
		if (output_snapshot(&set->outputs[i], &why) != 0)
			note_failure(set);
}

void output_set_sample(struct output_set *set, const struct format_sample *sample)
{
	struct failure why;

	output_set_rotate_at(set, sample->time_ns);
	for (size_t i = 0; i < set->count; i++)
		if (output_sample(&set->outputs[i], sample, &why) != 0)
			note_failure(set);
}
