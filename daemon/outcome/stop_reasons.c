/* SPDX-License-Identifier: MIT */
/* Which threads are stopped although the kernel copies others, why, and for how many samples? */
#include "daemon/outcome/stop_reasons.h"
#include "attach/clock.h"

#include "daemon/recorder/live_channel.h"

#include <stdio.h>

static const struct {
	const char *name, *text;
} reasons[DAEMON_REASON_COUNT] = {
	[DAEMON_REASON_SEARCH] = { "search", "to find the VM" },
	[DAEMON_REASON_REFUSED] = { "refused", "the kernel refuses to copy the thread" },
	[DAEMON_REASON_LARGE] = { "large", "stacks larger than a copy" },
	[DAEMON_REASON_PARTIAL] = { "partial", "copies gave too few full chains" },
	[DAEMON_REASON_SLOWED] = { "slowed", "the kernel now allows fewer samples" },
};

const char *daemon_reason_name(enum daemon_reason reason)
{
	return reasons[reason].name;
}

const char *daemon_reason_text(enum daemon_reason reason)
{
	return reasons[reason].text;
}

bool stops_are_allowed(const struct recorder *recorder)
{
	return recorder->options->capture != DAEMON_CAPTURE_KERNEL;
}

/* Index plus 1 of the list's entry for the thread and reason; 0 if the list is full. */
static size_t find_entry(struct daemon_stats *stats, pid_t pid, pid_t tid,
			 enum daemon_reason reason)
{
	size_t count = stats->stopped_thread_count;

	for (size_t i = 0; i < count; i++) {
		const struct daemon_stopped_thread *entry = &stats->stopped_threads[i];

		if (entry->tid == tid && entry->pid == pid && entry->reason == reason)
			return i + 1;
	}
	stats->reasons[reason].threads++;
	if (count == DAEMON_STOPPED_LISTED)
		return 0;
	stats->stopped_threads[count] =
		(struct daemon_stopped_thread){ .pid = pid, .tid = tid, .reason = reason };
	return ++stats->stopped_thread_count;
}

void stops_begin(struct sampled_thread *data, enum daemon_reason reason)
{
	data->stop_reason = reason;
	data->stop_entry = 0;
	data->is_stop_listed = false;
}

/* A live session shows only numbers, so a notice names the thread. */
static void tell_session(struct recorder *recorder, const struct daemon_stopped_thread *entry)
{
	char text[CHANNEL_TEXT_MAX];

	snprintf(text, sizeof(text), "thread %s [%d] is stopped for its samples: %s", entry->name,
		 (int)entry->tid, daemon_reason_text(entry->reason));
	live_channel_notice(recorder, text);
}

/* Called at the thread's first stop for this reason. */
static void list_thread(struct recorder_target *of, const struct attach_thread *thread,
			struct sampled_thread *data)
{
	struct daemon_stats *stats = of->recorder->stats;
	struct daemon_stopped_thread *entry;

	data->is_stop_listed = true;
	data->stop_entry = find_entry(stats, of->pid, thread->tid, data->stop_reason);
	if (!data->stop_entry)
		return;
	entry = &stats->stopped_threads[data->stop_entry - 1];
	snprintf(entry->name, sizeof(entry->name), "%s",
		 sampled_name(of, thread, data, clock_now_ns()));
	if (of->recorder->live_channel && data->stop_reason != DAEMON_REASON_SEARCH)
		tell_session(of->recorder, entry);
}

void stops_note(struct recorder_target *of, const struct attach_thread *thread,
		struct sampled_thread *data, uint64_t stops, uint64_t samples)
{
	const struct recorder *recorder = of->recorder;
	struct daemon_stats *stats = recorder->stats;

	if (stats->capture != DAEMON_CAPTURE_KERNEL)
		return;
	if (!recorder->sampler && data->stop_reason != DAEMON_REASON_SLOWED)
		stops_begin(data, DAEMON_REASON_SLOWED);
	if (!data->is_stop_listed)
		list_thread(of, thread, data);
	stats->reasons[data->stop_reason].stops += stops;
	stats->reasons[data->stop_reason].samples += samples;
	if (data->stop_entry)
		stats->stopped_threads[data->stop_entry - 1].samples += samples;
}
