/* SPDX-License-Identifier: MIT */
/* Which recording notes does a profile contain? */
#include "daemon/record/notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
	/* Processes that are listed by pid. */
	PIDS_MAX = 16,
	/* Threads that are listed by tid for one reason of stops. */
	THREADS_MAX = 8,
};

/** Buffer of the lines. */
struct notes {
	char *text;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) add(struct notes *notes, const char *layout, ...)
{
	size_t room = NOTES_MAX - notes->len;
	va_list arguments;
	int len;

	va_start(arguments, layout);
	len = vsnprintf(notes->text + notes->len, room, layout, arguments);
	va_end(arguments);
	if (len > 0)
		notes->len += (size_t)len < room ? (size_t)len : room - 1;
}

static void add_how(struct notes *notes, const struct daemon_options *options,
		    const struct daemon_stats *stats)
{
	static const char *const modes[] = {
		[DAEMON_MODE_DEFAULT] = "counters",
		[DAEMON_MODE_LEAF] = "leaf frames",
		[DAEMON_MODE_CALLGRAPH] = "call chains",
	};

	add(notes, "ljprof: version %s, %u Hz, %s, %s%s, %.2f s\n", LJPROF_VERSION,
	    options->rate_hz, options->wall ? "wall clock" : "processor time", modes[options->mode],
	    stats->capture == DAEMON_CAPTURE_KERNEL ? ", kernel samples" : "",
	    (double)stats->elapsed_ns / 1e9);
}

static void add_pids(struct notes *notes, const struct daemon_stats *stats)
{
	uint64_t count = 0;

	add(notes, "ljprof: pids");
	for (size_t i = 0; i < stats->process_count; i++)
		if (stats->processes[i].kind == DAEMON_PROCESS_LUAJIT && count++ < PIDS_MAX)
			add(notes, " %d", (int)stats->processes[i].pid);
	if (count > PIDS_MAX)
		add(notes, " and %" PRIu64 " more", count - PIDS_MAX);
	if (stats->unlisted_processes)
		add(notes, ", and %" PRIu64 " processes that are not listed",
		    stats->unlisted_processes);
	add(notes, "\n");
}

static void add_outcomes(struct notes *notes, const struct daemon_stats *stats)
{
	const uint64_t *n = stats->outcomes;
	uint64_t chains =
		n[DAEMON_FULL] + n[DAEMON_INCONSISTENT] + n[DAEMON_TRUNCATED] + n[DAEMON_UNWOUND];

	add(notes, "ljprof: samples %" PRIu64, stats->samples);
	if (chains)
		add(notes, ", full chains %.2f %%",
		    100.0 * (double)n[DAEMON_FULL] / (double)chains);
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		if (n[i])
			add(notes, ", %s %" PRIu64, daemon_outcome_name((enum daemon_outcome)i),
			    n[i]);
	add(notes, "\n");
}

static void add_pauses(struct notes *notes, const char *what, const struct daemon_histogram *pauses)
{
	add(notes, "ljprof: %s p50 %.1f us, p99 %.1f us, max %.1f us\n", what,
	    (double)daemon_histogram_quantile(pauses, 0.5) / 1e3,
	    (double)daemon_histogram_quantile(pauses, 0.99) / 1e3, (double)pauses->max_ns / 1e3);
}

static void add_reasons(struct notes *notes, const struct daemon_stats *stats)
{
	for (int reason = 0; reason < DAEMON_REASON_COUNT; reason++) {
		const struct daemon_stopped *stopped = &stats->reasons[reason];
		unsigned shown = 0;

		if (!stopped->threads)
			continue;
		add(notes,
		    "ljprof: stopped, %s: samples %" PRIu64 ", stops %" PRIu64 ", threads %" PRIu64
		    ":",
		    daemon_reason_text((enum daemon_reason)reason), stopped->samples,
		    stopped->stops, stopped->threads);
		for (size_t i = 0; i < stats->stopped_thread_count && shown < THREADS_MAX; i++) {
			if ((int)stats->stopped_threads[i].reason != reason)
				continue;
			add(notes, " %d", (int)stats->stopped_threads[i].tid);
			shown++;
		}
		add(notes, "\n");
	}
}

void notes_describe(const struct daemon_options *options, const struct daemon_stats *stats,
		    uint64_t cpu_ns, char ret_text[NOTES_MAX])
{
	struct notes notes = { .text = ret_text };

	add_how(&notes, options, stats);
	add_pids(&notes, stats);
	add_outcomes(&notes, stats);
	add(&notes,
	    "ljprof: ticks %" PRIu64 ", late %" PRIu64 ", missed %" PRIu64 ", merged %" PRIu64
	    ", of threads %" PRIu64 "\n",
	    stats->ticks, stats->late_ticks, stats->missed_ticks, stats->merged_ticks,
	    stats->thread_ticks);
	if (stats->copied.count)
		add_pauses(&notes, "copied in", &stats->copied);
	if (stats->stopped.count || stats->capture != DAEMON_CAPTURE_KERNEL)
		add_pauses(&notes, "stopped", &stats->stopped);
	add_reasons(&notes, stats);
	add(&notes, "ljprof: processor time of the recorder %.3f s\n", (double)cpu_ns / 1e9);
}
