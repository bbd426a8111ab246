/* SPDX-License-Identifier: MIT */
/* Which processes does a recording have, and which number has each in the summary? */
#include "daemon/targets/target_list.h"

#include "daemon/outcome/outcomes.h"
#include "daemon/outcome/settle.h"
#include "daemon/recorder/live_channel.h"
#include "daemon/targets/processes.h"

#include <stdlib.h>

static void list_process(struct recorder *recorder, struct recorder_target *of)
{
	struct daemon_stats *stats = recorder->stats;
	size_t size = (stats->process_count + 1) * sizeof(*stats->processes);
	struct daemon_process *larger = NULL;

	of->listed = SIZE_MAX;
	if (stats->process_count < DAEMON_PROCESSES_LISTED)
		larger = realloc(stats->processes, size);
	if (!larger) {
		stats->unlisted_processes++;
		return;
	}
	stats->processes = larger;
	of->listed = stats->process_count++;
	larger[of->listed] =
		(struct daemon_process){ .pid = of->pid, .kind = DAEMON_PROCESS_NO_LUAJIT };
	recorder_note_name(recorder, of);
}

struct recorder_target *recorder_find_entry(struct recorder *recorder, pid_t pid)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->pid == pid)
			return recorder->targets[i];
	return NULL;
}

/* @param process Owned by the list; NULL if opening was refused. */
struct recorder_target *recorder_add_entry(struct recorder *recorder, pid_t pid,
					   struct attach_process *process, struct failure *why)
{
	struct recorder_target *of = NULL, **larger = NULL;

	if (recorder->target_count < RECORDER_TARGETS_MAX) {
		of = calloc(1, sizeof(*of));
		larger = realloc(recorder->targets,
				 (recorder->target_count + 1) * sizeof(*recorder->targets));
	}
	if (larger)
		recorder->targets = larger;
	if (!of || !larger) {
		free(of);
		attach_process_close(process);
		failure_set(why,
			    recorder->target_count < RECORDER_TARGETS_MAX ? FAILURE_NO_MEMORY
									  : FAILURE_LIMIT,
			    0, pid, 0, "record one more process");
		return NULL;
	}
	*of = (struct recorder_target){ .recorder = recorder,
					.pid = pid,
					.process = process,
					.poll_interval_ns = PROCESSES_POLL_FIRST_NS };
	recorder->targets[recorder->target_count++] = of;
	list_process(recorder, of);
	return of;
}

static void free_entry(struct recorder_target *of)
{
	recorder_settle(of);
	target_destroy(of->target);
	attach_process_close(of->process);
	free(of);
}

void recorder_remove_entry(struct recorder *recorder, size_t index)
{
	struct daemon_process *listed = recorder_listed(recorder, recorder->targets[index]);

	if (listed)
		listed->ended = true;
	if (recorder->live_channel)
		live_channel_note_end(recorder, recorder->targets[index]);
	free_entry(recorder->targets[index]);
	recorder->targets[index] = recorder->targets[--recorder->target_count];
}

void recorder_close_processes(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		free_entry(recorder->targets[i]);
	free(recorder->targets);
	recorder->targets = NULL;
	recorder->target_count = 0;
}
