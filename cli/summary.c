/* SPDX-License-Identifier: MIT */
/* Progress line, summary and numbers of a recording. */
#include "cli/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

static bool progress_shown;

/* Outcomes that are looks at running threads with a VM. */
static uint64_t chains(const struct daemon_stats *stats)
{
	const uint64_t *n = stats->outcomes;

	return n[DAEMON_FULL] + n[DAEMON_TORN] + n[DAEMON_TRUNCATED] + n[DAEMON_UNWOUND];
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
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
		percent(stats->outcomes[DAEMON_FULL], chains(stats)));
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
	fputs("  VM states:", file);
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		if (stats->states[i])
			fprintf(file, " %s %.1f %%", format_state_name((enum format_state)i),
				percent(stats->states[i], stats->samples));
	fputc('\n', file);
}

static void print_outcomes(FILE *file, const struct daemon_stats *stats)
{
	static const struct {
		enum daemon_outcome outcome;
		const char *text;
	} shown[] = {
		{ DAEMON_TORN, "VM between two states" },
		{ DAEMON_TRUNCATED, "stack longer than what was copied" },
		{ DAEMON_UNWOUND, "native code without unwind information" },
		{ DAEMON_NO_VM, "outside the VM" },
		{ DAEMON_IDLE, "idle" },
		{ DAEMON_EXITED, "thread ended" },
		{ DAEMON_BUSY, "held by another tracer" },
		{ DAEMON_FAILED, "not read" },
	};

	fprintf(file, "  chains: %.2f %% full",
		percent(stats->outcomes[DAEMON_FULL], chains(stats)));
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (stats->outcomes[shown[i].outcome])
			fprintf(file, ", %" PRIu64 " %s", stats->outcomes[shown[i].outcome],
				shown[i].text);
	fputc('\n', file);
}

void summary_print(FILE *file, const struct daemon_options *options,
		   const struct daemon_stats *stats)
{
	fprintf(file, "ljrecord: %" PRIu64 " samples in %.2f s to %s (%" PRIu64 " bytes)\n",
		stats->samples, seconds(stats->elapsed_ns), options->output, stats->output_bytes);
	print_states(file, stats);
	print_outcomes(file, stats);
	fprintf(file,
		"  target stopped: p50 %.1f us, p99 %.1f us, max %.1f us; of it held p50 %.1f us\n",
		(double)daemon_histogram_quantile(&stats->stopped, 0.5) / 1e3,
		(double)daemon_histogram_quantile(&stats->stopped, 0.99) / 1e3,
		(double)stats->stopped.max_ns / 1e3,
		(double)daemon_histogram_quantile(&stats->held, 0.5) / 1e3);
	fprintf(file, "  ticks: %" PRIu64 ", %" PRIu64 " late, %" PRIu64 " missed\n", stats->ticks,
		stats->late_ticks, stats->missed_ticks);
	if (stats->interrupted_calls)
		fprintf(file, "  system calls interrupted: %" PRIu64 "\n",
			stats->interrupted_calls);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void add_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static struct json_object *pauses(const struct daemon_histogram *histogram)
{
	struct json_object *object = json_object_new_object();

	add_number(object, "count", histogram->count);
	add_number(object, "p50_ns", daemon_histogram_quantile(histogram, 0.5));
	add_number(object, "p90_ns", daemon_histogram_quantile(histogram, 0.9));
	add_number(object, "p99_ns", daemon_histogram_quantile(histogram, 0.99));
	add_number(object, "max_ns", histogram->max_ns);
	add_number(object, "sum_ns", histogram->sum_ns);
	return object;
}

static void add_counts(struct json_object *root, const struct daemon_stats *stats)
{
	struct json_object *states = json_object_new_object();
	struct json_object *outcomes = json_object_new_object();

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		add_number(states, format_state_name((enum format_state)i), stats->states[i]);
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		add_number(outcomes, daemon_outcome_name((enum daemon_outcome)i),
			   stats->outcomes[i]);
	json_object_object_add(root, "states", states);
	json_object_object_add(root, "outcomes", outcomes);
}

int summary_write_json(const char *path, const struct daemon_options *options,
		       const struct daemon_stats *stats)
{
	struct json_object *root = json_object_new_object();
	int ret;

	json_object_object_add(root, "version", json_object_new_string(LJPROF_VERSION));
	add_number(root, "pid", (uint64_t)options->pid);
	add_number(root, "frequency_hz", options->rate_hz);
	json_object_object_add(root, "output", json_object_new_string(options->output));
	add_number(root, "output_bytes", stats->output_bytes);
	add_number(root, "samples", stats->samples);
	add_number(root, "elapsed_ns", stats->elapsed_ns);
	add_number(root, "first_sample_ns", stats->first_sample_ns);
	add_number(root, "cpu_ns", stats->cpu_ns);
	add_number(root, "decode_ns", stats->decode_ns);
	add_number(root, "unwind_ns", stats->native_ns);
	add_number(root, "frames", stats->frames);
	add_number(root, "native_frames", stats->native_frames);
	add_number(root, "ticks", stats->ticks);
	add_number(root, "late_ticks", stats->late_ticks);
	add_number(root, "missed_ticks", stats->missed_ticks);
	add_number(root, "interrupted_calls", stats->interrupted_calls);
	add_counts(root, stats);
	json_object_object_add(root, "stopped", pauses(&stats->stopped));
	json_object_object_add(root, "held", pauses(&stats->held));
	errno = 0;
	ret = json_object_to_file_ext(path, root, JSON_C_TO_STRING_PRETTY);
	if (ret != 0 && errno == 0)
		errno = EIO;
	json_object_put(root);
	return ret;
}
