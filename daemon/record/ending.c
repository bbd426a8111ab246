/* SPDX-License-Identifier: MIT */
/* How does a recording end, and what happens to its outputs? */
#include "daemon/record/ending.h"

#include "attach/clock.h"
#include "daemon/record/notes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* ---- Why it ends ------------------------------------------------------------------------ */

static bool has_seen_luajit(const struct daemon_stats *stats)
{
	for (size_t i = 0; i < stats->process_count; i++)
		if (stats->processes[i].kind == DAEMON_PROCESS_LUAJIT)
			return true;
	return false;
}

/* Whether a command's program never ran; then we recorded only ourselves. */
static bool has_not_run(const struct daemon_options *options)
{
	struct pollfd failed = { .fd = options->failed_fd, .events = POLLIN };

	return poll(&failed, 1, 0) == 1 && (failed.revents & POLLIN);
}

/* What we saw of a command that ended soon depends on timing, so its end is always the same. A
 * command that ran longer is known to have no LuaJIT. */
static bool judge_command(struct recorder *recorder)
{
	if (!recorder->options->await_vm || recorder->end != DAEMON_END_EARLY ||
	    has_not_run(recorder->options) ||
	    (recorder->was_vain && !has_seen_luajit(recorder->stats)))
		return false;
	recorder_end_with(recorder, DAEMON_END_EMPTY,
			  "the command ended before the first sample: the profile is empty");
	return true;
}

void recorder_judge_end(struct recorder *recorder)
{
	const struct daemon_stats *stats = recorder->stats;

	if (judge_command(recorder))
		return;
	/* A command that continues, or the children of a process, without a Lua state. */
	if ((recorder->end != DAEMON_END_EARLY && recorder->end != DAEMON_END_STOPPED) ||
	    stats->samples > 0 || !(recorder->options->await_vm || recorder->options->children))
		return;
	if (has_seen_luajit(stats))
		return;
	snprintf(recorder->text, recorder->text_len, "no LuaJIT was found in %s",
		 recorder->options->await_vm ? "the command" : "these processes");
	recorder->end = DAEMON_END_NO_VM;
}

/* ---- Outputs ---------------------------------------------------------------------------- */

/* The first output that failed, or the first one if the writer reported none. */
static const struct output_file *failed_output(const struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->output_count; i++)
		if (recorder->stats->outputs[i].errnum)
			return &recorder->outputs[i];
	return &recorder->outputs[0];
}

static size_t count_failed(const struct recorder *recorder)
{
	size_t count = 0;

	for (size_t i = 0; i < recorder->output_count; i++)
		count += recorder->stats->outputs[i].errnum != 0;
	return count;
}

/* Describe what is left of this output, and of the others. */
static void describe_rest(const struct recorder *recorder, const struct output_file *file,
			  char *ret_text, size_t len)
{
	const struct daemon_output_result *result =
		&recorder->stats->outputs[file - recorder->outputs];
	size_t failed = count_failed(recorder), count = recorder->output_count;

	snprintf(ret_text, len, "%s%s",
		 output_describe_rest(file, recorder->options->rotate_s > 0, result),
		 count == 1 || failed == 0 ? ""
		 : failed == 1		   ? "; the other outputs are complete"
		 : failed < count	   ? "; other outputs failed, too, but not all"
					   : "; all other outputs failed, too");
}

static void report_failed_output(struct recorder *recorder, const struct message_status *status)
{
	const struct output_file *file = failed_output(recorder);
	int end = recorder->writer.wait_status;
	char how[48] = "", rest[160];

	describe_rest(recorder, file, rest, sizeof(rest));
	recorder->end = DAEMON_END_OUTPUT;
	switch (recorder->writer.fate) {
	case WRITER_REPORTED:
		snprintf(recorder->text, recorder->text_len, "cannot write %s: %s: %s", file->path,
			 status->errnum == ENOMEM ? "out of memory" : strerror(status->errnum),
			 rest);
		break;
	case WRITER_STUCK:
		snprintf(recorder->text, recorder->text_len,
			 "cannot write %s: it accepted no data for %d s: %s", file->path,
			 MESSAGE_PATIENCE_MS / 1000, rest);
		break;
	case WRITER_DIED:
		if (WIFSIGNALED(end))
			snprintf(how, sizeof(how), " by signal %d", WTERMSIG(end));
		snprintf(recorder->text, recorder->text_len, "the writer of %s died%s: %s",
			 file->path, how, rest);
		break;
	}
}

/* If the writer has failed, this is useless but harmless. */
static void put_notes(struct recorder *recorder)
{
	char text[NOTES_MAX];
	struct failure why;

	notes_describe(recorder->options, recorder->stats, clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
		       text);
	/* Without memory for the notes, the profile is still complete. */
	message_put_notes(&recorder->writer.queue, text, &why);
}

/* Whether nothing was recorded, so that old files must stay unchanged. */
static bool is_unused(const struct recorder *recorder)
{
	return recorder->stats->samples == 0 && recorder->end != DAEMON_END_STOPPED &&
	       recorder->end != DAEMON_END_TARGET && recorder->end != DAEMON_END_EMPTY;
}

void recorder_finish_outputs(struct recorder *recorder)
{
	struct message_status status;

	if (!recorder->writing)
		return;
	if (is_unused(recorder))
		writer_collect(&recorder->writer, &status);
	else {
		put_notes(recorder);
		writer_finish(&recorder->writer, &status);
	}
	memcpy(recorder->stats->outputs, status.outputs, sizeof(status.outputs));
	if (status.errnum)
		report_failed_output(recorder, &status);
}

void recorder_close_outputs(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->output_count; i++) {
		struct output_file *file = &recorder->outputs[i];
		bool failed = recorder->end == DAEMON_END_OUTPUT &&
			      (!recorder->writing || recorder->stats->outputs[i].errnum);

		if (is_unused(recorder) || failed)
			output_remove(file, is_unused(recorder));
		output_close(file);
	}
}
