/* SPDX-License-Identifier: MIT */
/* All outputs: each sample goes to each; series begin new files. */
#include "daemon/writer/output_set.h"
#include "attach/clock.h"

#include <time.h>

#include "daemon/tick_clock.h"

/* The recorder ends a recording of which an output has failed; until it does the others get what
 * comes. */
static void note_failure(struct written_set *set)
{
	atomic_store(&set->pulse->failed, true);
}

/* What the recorder ends a recording by that is to end at some size. */
static void tell_bytes(struct written_set *set)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < set->count; i++)
		if (written_bytes(&set->outputs[i]) > largest)
			largest = written_bytes(&set->outputs[i]);
	atomic_store(&set->pulse->largest_bytes, largest);
}

void written_set_commit(struct written_set *set)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (written_commit(&set->outputs[i], &why) != 0)
			note_failure(set);
	tell_bytes(set);
}

void written_set_account(struct written_set *set, const char *text)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (written_account(&set->outputs[i], text, &why) != 0)
			note_failure(set);
}

void written_set_finish(struct written_set *set, bool is_empty_too)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (written_finish(&set->outputs[i], is_empty_too, &why) != 0)
			note_failure(set);
	tell_bytes(set);
}

void written_set_begin(struct written_set *set)
{
	struct failure why;

	for (size_t i = 0; i < set->count; i++)
		if (written_begin(&set->outputs[i], &why) != 0)
			note_failure(set);
}

/* Between two samples, so that each is in one file. */
static void rotate(struct written_set *set, uint64_t begin_ns)
{
	struct format_options *options = &set->shared.options;
	struct timespec now;
	uint64_t age_ns;

	written_set_finish(set, false);
	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = clock_now_ns() - begin_ns;
	options->start_ns = begin_ns;
	options->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - age_ns;
	set->rotate_at_ns = begin_ns + set->rotate_ns;
	written_set_begin(set);
}

void written_set_rotate_at(struct written_set *set, uint64_t time_ns)
{
	uint64_t over_ns;

	if (!set->rotate_ns || time_ns < set->rotate_at_ns)
		return;
	over_ns = (time_ns - set->rotate_at_ns) % set->rotate_ns;
	rotate(set, time_ns - over_ns);
}

void written_set_snapshot(struct written_set *set, uint64_t time_ns)
{
	struct failure why;

	if (set->rotate_ns) {
		rotate(set, time_ns);
		return;
	}
	for (size_t i = 0; i < set->count; i++)
		if (written_snapshot(&set->outputs[i], &why) != 0)
			note_failure(set);
}

void written_set_sample(struct written_set *set, const struct format_sample *sample)
{
	struct failure why;

	written_set_rotate_at(set, sample->time_ns);
	for (size_t i = 0; i < set->count; i++)
		if (written_sample(&set->outputs[i], sample, &why) != 0)
			note_failure(set);
}
