/* SPDX-License-Identifier: MIT */
/* What does a recording know: its processes, its limits, and how it ends? */
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/live_channel.h"

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
	struct attach_identity identity;
	struct attach_names names;

	if (listed && attach_names_of(of->pid, &names))
		snprintf(listed->name, sizeof(listed->name), "%s", names.command);
	if (listed && attach_identity_of(of->pid, &identity))
		listed->uid = identity.uid;
}

void recorder_note_kind(struct recorder *recorder, struct recorder_target *of,
			enum daemon_process_kind kind)
{
	struct daemon_process *listed = recorder_listed(recorder, of);

	/* A process with samples had LuaJIT, whatever it runs now. */
	if (listed && listed->samples == 0)
		listed->kind = kind;
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
	if (recorder->live_channel)
		live_channel_notice(recorder, text);
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

/* ---- Samples ---------------------------------------------------------------------------- */

int recorder_announce(void *context, const struct format_function *function, uint32_t *ret_id,
		      struct failure *why)
{
	struct recorder *recorder = context;

	if (recorder->live_channel && live_channel_is_full(recorder)) {
		/* Announced again when there is room. */
		live_channel_note_lost(recorder);
		*ret_id = recorder->next_function++;
		return 0;
	}
	if (message_put_function(&recorder->writer.queue, recorder->next_function, function, why) !=
	    0)
		return -1;
	*ret_id = recorder->next_function++;
	return 0;
}

int recorder_put_sample(struct recorder *recorder, const struct format_sample *sample,
			struct failure *why)
{
	if (recorder->live_channel && live_channel_is_full(recorder)) {
		recorder->stats->dropped++;
		return 0;
	}
	return message_put_sample(&recorder->writer.queue, sample, why);
}

bool recorder_is_at_limit(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;

	if (recorder->live_channel)
		return false;
	if (options->limit_samples && recorder->stats->samples >= options->limit_samples)
		recorder->stats->limit = DAEMON_LIMIT_SAMPLES;
	else if (options->limit_bytes && writer_bytes(&recorder->writer) >= options->limit_bytes)
		recorder->stats->limit = DAEMON_LIMIT_BYTES;
	return recorder->stats->limit != DAEMON_LIMIT_NONE;
}
