/* SPDX-License-Identifier: MIT */
/* What does ljrecord print about a recording: progress line, summary and JSON? */
#include "cli/record/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/json_keys.h"
#include "format/text.h"

enum {
	/* Processes of one kind that the summary names. */
	PROCESSES_SHOWN = 16,
	/* Threads stopped for one reason that the summary names. */
	THREADS_SHOWN = 8,
	/* Threads that used this many periods of processor time should have copies. */
	LACKING_PERIODS = 10,
};

static bool progress_shown;

/* Samples of running threads with a VM. */
static uint64_t chains(const struct daemon_stats *stats)
{
	const uint64_t *n = stats->outcomes;

	return n[DAEMON_FULL] + n[DAEMON_INCONSISTENT] + n[DAEMON_TRUNCATED] + n[DAEMON_UNWOUND];
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

void summary_progress(void *context, const struct daemon_stats *stats)
{
	double elapsed_s = seconds(stats->elapsed_ns);

	(void)context;
	fprintf(stderr, "\r%.1f s  %" PRIu64 " samples  %.0f ticks/s  %.1f %% full chains\033[K",
		elapsed_s, stats->samples, elapsed_s > 0 ? (double)stats->ticks / elapsed_s : 0.0,
		format_percent(stats->outcomes[DAEMON_FULL], chains(stats)));
	fflush(stderr);
	progress_shown = true;
}

void summary_clear_progress(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

static void print_states(FILE *file, const struct daemon_stats *stats)
{
	uint64_t ran = stats->samples - stats->outcomes[DAEMON_ASLEEP];

	fputs("  VM states:", file);
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		if (stats->states[i])
			fprintf(file, " %s %.1f %%", format_state_name((enum format_state)i),
				format_percent(stats->states[i], ran));
	fputc('\n', file);
}

static void print_outcomes(FILE *file, const struct daemon_stats *stats)
{
	static const struct {
		enum daemon_outcome outcome;
		const char *text;
	} shown[] = {
		{ DAEMON_INCONSISTENT, "VM in an inconsistent state" },
		{ DAEMON_TRUNCATED, "stack longer than its copy" },
		{ DAEMON_UNWOUND, "native code without unwind information" },
		{ DAEMON_NO_VM, "outside the VM" },
		{ DAEMON_IDLE, "idle" },
		{ DAEMON_UNSCHEDULED, "waiting for a processor" },
		{ DAEMON_RESTED, "skipped, never ran Lua" },
		{ DAEMON_EXITED, "thread ended" },
		{ DAEMON_BUSY, "held by another tracer" },
		{ DAEMON_FAILED, "not read" },
	};

	fputs("  chains:", file);
	if (chains(stats) || !stats->outcomes[DAEMON_ASLEEP])
		fprintf(file, " %.2f %% full",
			format_percent(stats->outcomes[DAEMON_FULL], chains(stats)));
	else
		fputs(" none of a running thread", file);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (stats->outcomes[shown[i].outcome])
			fprintf(file, ", %" PRIu64 " %s", stats->outcomes[shown[i].outcome],
				shown[i].text);
	fputc('\n', file);
}

static void print_waits(FILE *file, const struct daemon_stats *stats)
{
	uint64_t asleep = stats->outcomes[DAEMON_ASLEEP];

	if (asleep)
		fprintf(file,
			"  waiting: %" PRIu64 " of %" PRIu64
			" samples, %.2f %% with a full chain\n",
			asleep, stats->samples, format_percent(stats->asleep_full, asleep));
}

static void print_compiled(FILE *file, const struct daemon_stats *stats)
{
	const uint64_t *n = stats->compiled;
	uint64_t compiled = n[FORMAT_COMPILED_EXACT] + n[FORMAT_COMPILED_APPROXIMATE] +
			    n[FORMAT_COMPILED_TRACE];

	if (compiled == 0)
		return;
	fprintf(file,
		"  compiled: %" PRIu64 " of %" PRIu64
		" samples, %.1f %% exact, %.1f %% approximate",
		compiled, stats->samples, format_percent(n[FORMAT_COMPILED_EXACT], compiled),
		format_percent(n[FORMAT_COMPILED_APPROXIMATE], compiled));
	if (n[FORMAT_COMPILED_TRACE])
		fprintf(file, ", %.1f %% trace only",
			format_percent(n[FORMAT_COMPILED_TRACE], compiled));
	fputc('\n', file);
}

/* ---- Processes -------------------------------------------------------------------------- */

/* Most samples first, then in the order of discovery. */
static int compare_processes(const void *left, const void *right)
{
	const struct daemon_process *a = *(const struct daemon_process *const *)left;
	const struct daemon_process *b = *(const struct daemon_process *const *)right;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return (a > b) - (a < b);
}

static size_t count_kind(const struct daemon_stats *stats, enum daemon_process_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < stats->process_count; i++)
		count += stats->processes[i].kind == kind;
	return count;
}

/* Print processes of one kind, most samples first, only as many as a person reads. */
static void print_kind(FILE *file, const struct daemon_stats *stats,
		       const struct daemon_process **sorted, enum daemon_process_kind kind)
{
	size_t count = count_kind(stats, kind), shown = 0;

	for (size_t i = 0; i < stats->process_count && shown < PROCESSES_SHOWN; i++) {
		if (sorted[i]->kind != kind)
			continue;
		fprintf(file, "%s %s [%d]", shown++ ? "," : "", sorted[i]->name,
			(int)sorted[i]->pid);
		if (kind == DAEMON_PROCESS_LUAJIT)
			fprintf(file, " %.1f %%",
				format_percent(sorted[i]->samples, stats->samples));
	}
	if (count > shown)
		fprintf(file, ", and %zu more", count - shown);
	fputc('\n', file);
}

static void print_processes(FILE *file, const struct daemon_stats *stats)
{
	static const char *const titles[DAEMON_PROCESS_KIND_COUNT] = {
		[DAEMON_PROCESS_LUAJIT] = "with LuaJIT",
		[DAEMON_PROCESS_NO_LUAJIT] = "without LuaJIT",
		[DAEMON_PROCESS_DENIED] = "not permitted",
	};
	const struct daemon_process **sorted;

	if (stats->process_count < 2)
		return;
	sorted = calloc(stats->process_count, sizeof(const struct daemon_process *));
	if (!sorted)
		return;
	for (size_t i = 0; i < stats->process_count; i++)
		sorted[i] = &stats->processes[i];
	qsort(sorted, stats->process_count, sizeof(*sorted), compare_processes);
	for (int kind = 0; kind < DAEMON_PROCESS_KIND_COUNT; kind++) {
		size_t count = count_kind(stats, (enum daemon_process_kind)kind);

		if (count == 0)
			continue;
		fprintf(file, "  processes %s: %zu:", titles[kind], count);
		print_kind(file, stats, sorted, (enum daemon_process_kind)kind);
	}
	if (stats->unlisted_processes)
		fprintf(file, "  and %" PRIu64 " processes that are not listed\n",
			stats->unlisted_processes);
	free(sorted);
}

static const char *const limit_names[] = {
	[DAEMON_LIMIT_SAMPLES] = "samples", [DAEMON_LIMIT_BYTES] = "bytes"
};

static void print_output(FILE *file, const struct daemon_options *options,
			 const struct daemon_stats *stats, size_t index)
{
	const struct daemon_output *output = &options->outputs[index];
	const struct daemon_output_result *result = &stats->outputs[index];
	bool several = options->output_count > 1;

	fprintf(file, several ? "  %s%s: " : " to %s%s (", output->path,
		result->errnum ? ", not complete" : "");
	if (several)
		fprintf(file, "%s, ", output->format->name);
	if (options->rotate_s > 0)
		fprintf(file, "%" PRIu32 " file%s, ", result->files, result->files == 1 ? "" : "s");
	fprintf(file, "%" PRIu64 " bytes%s\n", result->bytes, several ? "" : ")");
}

/* A single output is on the same line; several follow below. */
static void print_outputs(FILE *file, const struct daemon_options *options,
			  const struct daemon_stats *stats)
{
	if (options->output_count > 1)
		fprintf(file, " to %zu outputs\n", options->output_count);
	for (size_t i = 0; i < options->output_count; i++)
		print_output(file, options, stats, i);
}

/* End the line of what took the samples. */
static void end_with_late(FILE *file, const struct daemon_stats *stats)
{
	if (stats->late_copies)
		fprintf(file, "; %" PRIu64 " ended early", stats->late_copies);
	fputc('\n', file);
}

/* With kernel samples, the stops are those that found the VM, and those of threads that cannot be
 * copied. */
static void print_pauses(FILE *file, const struct daemon_stats *stats)
{
	const struct daemon_histogram *stopped = &stats->stopped, *copied = &stats->copied;

	if (copied->count)
		fprintf(file, "  target copied in: p50 %.1f us, p99 %.1f us, max %.1f us",
			(double)daemon_histogram_quantile(copied, 0.5) / 1e3,
			(double)daemon_histogram_quantile(copied, 0.99) / 1e3,
			(double)copied->max_ns / 1e3);
	if (copied->count)
		end_with_late(file, stats);
	if (stats->capture == DAEMON_CAPTURE_KERNEL && !copied->count)
		fputs("  target copied: never\n", file);
	if (stats->capture == DAEMON_CAPTURE_KERNEL && !stopped->count)
		return;
	fprintf(file, "  target stopped: ");
	if (stats->capture == DAEMON_CAPTURE_KERNEL && stopped->count == 1)
		fprintf(file, "once, ");
	else if (stats->capture == DAEMON_CAPTURE_KERNEL)
		fprintf(file, "%" PRIu64 " times, ", stopped->count);
	fprintf(file, "p50 %.1f us, p99 %.1f us, max %.1f us (held: p50 %.1f us)",
		(double)daemon_histogram_quantile(stopped, 0.5) / 1e3,
		(double)daemon_histogram_quantile(stopped, 0.99) / 1e3,
		(double)stopped->max_ns / 1e3,
		(double)daemon_histogram_quantile(&stats->held, 0.5) / 1e3);
	if (copied->count)
		fputc('\n', file);
	else
		end_with_late(file, stats);
}

/* A running thread has ticks, and nearly each tick has a copy. */
static void print_lack(FILE *file, const struct daemon_options *options,
		       const struct daemon_stats *stats)
{
	double periods = seconds(stats->ran_ns) * options->rate_hz;

	if (stats->capture != DAEMON_CAPTURE_KERNEL || stats->samples || stats->copied.count ||
	    periods < LACKING_PERIODS)
		return;
	fprintf(file,
		"  warning: no copy was made in %.2f s in which threads ran: try "
		"--capture=stop\n",
		seconds(stats->ran_ns));
}

/* With kernel samples: which threads were stopped nevertheless, and why. */
static void print_reasons(FILE *file, const struct daemon_stats *stats)
{
	for (int reason = 0; reason < DAEMON_REASON_COUNT; reason++) {
		const struct daemon_stopped *stopped = &stats->reasons[reason];
		unsigned shown = 0;

		if (!stopped->threads)
			continue;
		fprintf(file, "  stopped, %s: %" PRIu64 " samples, %" PRIu64 " stops; thread%s",
			daemon_reason_text((enum daemon_reason)reason), stopped->samples,
			stopped->stops, stopped->threads == 1 ? "" : "s");
		for (size_t i = 0; i < stats->stopped_thread_count && shown < THREADS_SHOWN; i++) {
			const struct daemon_stopped_thread *thread = &stats->stopped_threads[i];
			char name[sizeof(thread->name)];

			if ((int)thread->reason != reason)
				continue;
			memcpy(name, thread->name, sizeof(name));
			format_clean_text(name, strlen(name));
			fprintf(file, "%s %s [%d]", shown++ ? "," : "", name, (int)thread->tid);
		}
		if (stopped->threads > shown)
			fprintf(file, ", and %" PRIu64 " more", stopped->threads - shown);
		fputc('\n', file);
	}
}

void summary_print(FILE *file, const struct daemon_options *options,
		   const struct daemon_stats *stats)
{
	fprintf(file, "ljrecord: %" PRIu64 " samples in %.2f s", stats->samples,
		seconds(stats->elapsed_ns));
	print_outputs(file, options, stats);
	if (stats->limit != DAEMON_LIMIT_NONE)
		fprintf(file, "  stopped by --limit-%s\n", limit_names[stats->limit]);
	print_states(file, stats);
	print_outcomes(file, stats);
	print_waits(file, stats);
	print_compiled(file, stats);
	print_processes(file, stats);
	print_pauses(file, stats);
	print_lack(file, options, stats);
	print_reasons(file, stats);
	fprintf(file,
		"  ticks: %" PRIu64 ", %" PRIu64 " late, %" PRIu64 " missed (%" PRIu64
		" merged); of threads: %" PRIu64 "\n",
		stats->ticks, stats->late_ticks, stats->missed_ticks, stats->merged_ticks,
		stats->thread_ticks);
	if (stats->interrupted_calls)
		fprintf(file, "  system calls interrupted: %" PRIu64 "\n",
			stats->interrupted_calls);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *pauses(const struct daemon_histogram *histogram)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "count", histogram->count);
	json_keys_add_number(object, "p50_ns", daemon_histogram_quantile(histogram, 0.5));
	json_keys_add_number(object, "p90_ns", daemon_histogram_quantile(histogram, 0.9));
	json_keys_add_number(object, "p99_ns", daemon_histogram_quantile(histogram, 0.99));
	json_keys_add_number(object, "max_ns", histogram->max_ns);
	json_keys_add_number(object, "sum_ns", histogram->sum_ns);
	return object;
}

static struct json_object *outcome_counts(const uint64_t counts[DAEMON_OUTCOME_COUNT])
{
	struct json_object *object = json_object_new_object();

	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		json_keys_add_number(object, daemon_outcome_name((enum daemon_outcome)i),
				     counts[i]);
	return object;
}

static struct json_object *compiled_counts(const uint64_t counts[FORMAT_COMPILED_COUNT])
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "exact", counts[FORMAT_COMPILED_EXACT]);
	json_keys_add_number(object, "approximate", counts[FORMAT_COMPILED_APPROXIMATE]);
	json_keys_add_number(object, "trace", counts[FORMAT_COMPILED_TRACE]);
	return object;
}

static void add_counts(struct json_object *root, const struct daemon_stats *stats)
{
	struct json_object *states = json_object_new_object();

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		json_keys_add_number(states, format_state_name((enum format_state)i),
				     stats->states[i]);
	json_object_object_add(root, "states", states);
	json_object_object_add(root, "outcomes", outcome_counts(stats->outcomes));
	json_object_object_add(root, "compiled", compiled_counts(stats->compiled));
}

static struct json_object *process_list(const struct daemon_stats *stats)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < stats->process_count; i++) {
		const struct daemon_process *process = &stats->processes[i];
		struct json_object *object = json_object_new_object();

		json_keys_add_number(object, "pid", (uint64_t)process->pid);
		json_keys_add_foreign(object, "name", process->name);
		json_keys_add_word(object, "kind", daemon_process_kind_name(process->kind));
		json_keys_add_flag(object, "ended", process->ended);
		json_keys_add_number(object, "samples", process->samples);
		json_object_object_add(object, "outcomes", outcome_counts(process->outcomes));
		json_object_array_add(list, object);
	}
	return list;
}

/* With kernel samples: what was stopped nevertheless. */
static void add_reasons(struct json_object *root, const struct daemon_stats *stats)
{
	struct json_object *reasons = json_object_new_object(), *list = json_object_new_array();

	for (int i = 0; i < DAEMON_REASON_COUNT; i++) {
		struct json_object *object = json_object_new_object();

		json_keys_add_number(object, "threads", stats->reasons[i].threads);
		json_keys_add_number(object, "stops", stats->reasons[i].stops);
		json_keys_add_number(object, "samples", stats->reasons[i].samples);
		json_object_object_add(reasons, daemon_reason_name((enum daemon_reason)i), object);
	}
	for (size_t i = 0; i < stats->stopped_thread_count; i++) {
		const struct daemon_stopped_thread *thread = &stats->stopped_threads[i];
		struct json_object *object = json_object_new_object();

		json_keys_add_number(object, "pid", (uint64_t)thread->pid);
		json_keys_add_number(object, "tid", (uint64_t)thread->tid);
		json_keys_add_foreign(object, "name", thread->name);
		json_keys_add_word(object, "reason", daemon_reason_name(thread->reason));
		json_keys_add_number(object, "samples", thread->samples);
		json_object_array_add(list, object);
	}
	json_object_object_add(root, "stop_reasons", reasons);
	json_object_object_add(root, "stopped_threads", list);
}

static uint64_t samples_of(const struct daemon_trace *trace)
{
	return trace->samples[FORMAT_COMPILED_EXACT] + trace->samples[FORMAT_COMPILED_APPROXIMATE] +
	       trace->samples[FORMAT_COMPILED_TRACE];
}

/* Most samples first, then in the order of discovery. */
static int compare_traces(const void *left, const void *right)
{
	const struct daemon_trace *a = *(const struct daemon_trace *const *)left;
	const struct daemon_trace *b = *(const struct daemon_trace *const *)right;

	if (samples_of(a) != samples_of(b))
		return samples_of(a) > samples_of(b) ? -1 : 1;
	return (a > b) - (a < b);
}

static struct json_object *trace_object(const struct daemon_trace *trace)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "pid", (uint64_t)trace->pid);
	json_keys_add_number(object, "trace", trace->number);
	json_keys_add_foreign(object, "chunk", trace->chunk);
	json_object_object_add(object, "line", json_object_new_int64(trace->line));
	json_keys_add_number(object, "samples", samples_of(trace));
	json_keys_add_number(object, "exact", trace->samples[FORMAT_COMPILED_EXACT]);
	json_keys_add_number(object, "approximate", trace->samples[FORMAT_COMPILED_APPROXIMATE]);
	json_keys_add_number(object, "trace_only", trace->samples[FORMAT_COMPILED_TRACE]);
	return object;
}

static struct json_object *trace_list(const struct daemon_stats *stats)
{
	struct json_object *list = json_object_new_array();
	const struct daemon_trace **sorted =
		calloc(stats->trace_count + 1, sizeof(const struct daemon_trace *));

	for (size_t i = 0; sorted && i < stats->trace_count; i++)
		sorted[i] = &stats->traces[i];
	if (sorted)
		qsort(sorted, stats->trace_count, sizeof(*sorted), compare_traces);
	for (size_t i = 0; sorted && i < stats->trace_count; i++)
		json_object_array_add(list, trace_object(sorted[i]));
	free(sorted);
	return list;
}

/* Also print the first output with separate keys, from a time when there was only one. */
static void add_outputs(struct json_object *root, const struct daemon_options *options,
			const struct daemon_stats *stats)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < options->output_count; i++) {
		const struct daemon_output *output = &options->outputs[i];
		const struct daemon_output_result *result = &stats->outputs[i];
		struct json_object *object = json_object_new_object();

		if (i == 0) {
			json_keys_add_foreign(root, "output", output->path);
			json_keys_add_number(root, "output_bytes", result->bytes);
		}
		json_keys_add_foreign(object, "file", output->path);
		json_keys_add_word(object, "format", output->format->name);
		json_keys_add_number(object, "files", result->files);
		json_keys_add_number(object, "bytes", result->bytes);
		json_keys_add_flag(object, "complete", result->errnum == 0);
		json_object_array_add(list, object);
	}
	json_object_object_add(root, "outputs", list);
}

int summary_write_json(int fd, const struct daemon_options *options,
		       const struct daemon_stats *stats)
{
	const char *how = stats->capture == DAEMON_CAPTURE_KERNEL ? "kernel" : "stop";
	struct json_object *root = json_object_new_object();
	int ret;

	json_keys_add_word(root, "version", LJPROF_VERSION);
	if (options->pid_count == 1)
		json_keys_add_number(root, "pid", (uint64_t)options->pids[0]);
	json_keys_add_number(root, "frequency_hz", options->rate_hz);
	json_keys_add_word(root, "capture", how);
	add_outputs(root, options, stats);
	json_object_object_add(root, "limit",
			       stats->limit == DAEMON_LIMIT_NONE
				       ? NULL
				       : json_object_new_string(limit_names[stats->limit]));
	json_keys_add_number(root, "samples", stats->samples);
	json_keys_add_number(root, "records", stats->records);
	json_keys_add_number(root, "elapsed_ns", stats->elapsed_ns);
	json_keys_add_number(root, "first_sample_ns", stats->first_sample_ns);
	json_keys_add_number(root, "cpu_ns", stats->cpu_ns);
	json_keys_add_number(root, "decode_ns", stats->decode_ns);
	json_keys_add_number(root, "unwind_ns", stats->native_ns);
	json_keys_add_number(root, "frames", stats->frames);
	json_keys_add_number(root, "native_frames", stats->native_frames);
	json_keys_add_number(root, "ticks", stats->ticks);
	json_keys_add_number(root, "late_ticks", stats->late_ticks);
	json_keys_add_number(root, "missed_ticks", stats->missed_ticks);
	json_keys_add_number(root, "merged_ticks", stats->merged_ticks);
	json_keys_add_number(root, "thread_ticks", stats->thread_ticks);
	json_keys_add_number(root, "asleep_full", stats->asleep_full);
	json_keys_add_number(root, "interrupted_calls", stats->interrupted_calls);
	add_counts(root, stats);
	json_object_object_add(root, "stopped", pauses(&stats->stopped));
	json_object_object_add(root, "held", pauses(&stats->held));
	json_object_object_add(root, "copied", pauses(&stats->copied));
	json_keys_add_number(root, "late_copies", stats->late_copies);
	add_reasons(root, stats);
	json_keys_add_number(root, "unlisted_processes", stats->unlisted_processes);
	json_object_object_add(root, "processes", process_list(stats));
	json_object_object_add(root, "traces", trace_list(stats));
	json_keys_add_number(root, "unlisted_trace_samples", stats->unlisted_trace_samples);
	errno = 0;
	/* EINVAL: a file that cannot be truncated, such as a pipe, keeps no old contents. */
	ret = ftruncate(fd, 0) != 0 && errno != EINVAL ? -1 : 0;
	if (ret == 0)
		ret = json_object_to_fd(fd, root, JSON_C_TO_STRING_PRETTY);
	if (ret != 0 && errno == 0)
		errno = EIO;
	json_object_put(root);
	return ret;
}
