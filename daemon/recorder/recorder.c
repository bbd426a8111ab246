/* SPDX-License-Identifier: MIT */
/* The list of processes, and what is told of them. */
#include "daemon/recorder/feed.h"
#include "daemon/targets/processes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct daemon_process *recorder_listed(struct recorder *recorder, const struct recorder_target *of)
{
	return of->listed < recorder->stats->process_count ? &recorder->stats->processes[of->listed]
							   : NULL;
}

void recorder_note_name(struct recorder *recorder, struct recorder_target *of)
{
	struct daemon_process *listed = recorder_listed(recorder, of);
	struct attach_names names;

	if (listed && attach_names_of(of->pid, &names))
		snprintf(listed->name, sizeof(listed->name), "%s", names.command);
}

void recorder_note_kind(struct recorder *recorder, struct recorder_target *of,
			enum daemon_process_kind kind)
{
	struct daemon_process *listed = recorder_listed(recorder, of);

	/* A process of which there are samples had LuaJIT, whatever it runs now. */
	if (listed && listed->samples == 0)
		listed->kind = kind;
}

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

/* @param process Taken over; NULL where it was refused. */
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
			    0, pid, 0, "follow one more process");
		return NULL;
	}
	*of = (struct recorder_target){ .recorder = recorder,
					.pid = pid,
					.process = process,
					.look_interval_ns = PROCESSES_LOOK_FIRST_NS };
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
	if (recorder->feed)
		feed_note_end(recorder, recorder->targets[index]);
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

bool recorder_any(const struct recorder *recorder, bool (*is_so)(const struct recorder_target *of))
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (is_so(recorder->targets[i]))
			return true;
	return false;
}

bool entry_is_open(const struct recorder_target *of)
{
	return of->process != NULL;
}

bool entry_has_luajit(const struct recorder_target *of)
{
	return of->target && luastate_has_interpreter(of->target->lua);
}

bool entry_has_vm(const struct recorder_target *of)
{
	return of->target && luastate_vm_count(of->target->lua) > 0;
}

/* ---- Messages --------------------------------------------------------------------------- */

bool recorder_is_single(const struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;

	return options->pid_count == 1 && options->name_count == 0 && !options->children;
}

void recorder_notice(struct recorder *recorder, const char *text)
{
	if (recorder->feed)
		feed_notice(recorder, text);
	if (recorder->options->notice)
		recorder->options->notice(recorder->options->context, text);
}

int recorder_end_with(struct recorder *recorder, enum daemon_end end, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(recorder->text, recorder->text_len, format, arguments);
	va_end(arguments);
	recorder->end = end;
	return -1;
}

void recorder_end_all(struct recorder *recorder, bool lost)
{
	bool early = recorder->stats->samples == 0;
	const char *when = early ? "before the first sample" : "while it was recorded";
	enum daemon_end end = early ? DAEMON_END_EARLY : DAEMON_END_TARGET;

	if (recorder_is_single(recorder) && recorder->stats->process_count == 1)
		recorder_end_with(recorder, end, "process %d %s %s",
				  (int)recorder->stats->processes[0].pid,
				  lost ? "runs another program now" : "ended", when);
	else
		recorder_end_with(recorder, end, "all processes %s%s",
				  lost ? "have ended or run other programs now" : "ended",
				  early ? " before the first sample" : "");
}
