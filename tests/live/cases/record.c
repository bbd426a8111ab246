/* SPDX-License-Identifier: MIT */
/*
 * Record a process as ljrecord does, but write each sample as a line of text, with what the formats
 * do not keep: whether the chain is full. Usage: record_chains PID RATE SECONDS OUTPUT
 * Prints the outcomes and their numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/record.h"

enum { LINE_MAX_BYTES = 1 << 20 };

struct chains {
	struct format_sink *sink;
	const struct format_functions *functions;
	char line[LINE_MAX_BYTES];
	size_t len;
	bool too_long;
};

static int chains_open(struct format_sink *sink, const struct format_functions *functions,
		       const struct format_options *options, void **ret_self, struct failure *why)
{
	struct chains *chains = calloc(1, sizeof(*chains));

	(void)options;
	if (!chains)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "open a text of chains");
	chains->sink = sink;
	chains->functions = functions;
	*ret_self = chains;
	return 0;
}

static void put(struct chains *chains, const char *text)
{
	size_t len = strlen(text);

	if (chains->len + len >= LINE_MAX_BYTES) {
		chains->too_long = true;
		return;
	}
	memcpy(chains->line + chains->len, text, len);
	chains->len += len;
}

/* Module without its folder, or a chunk's name. */
static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

static void describe(const struct format_function *function, const struct format_frame *frame,
		     char *ret_text, size_t size)
{
	static const char kinds[] = { 'N', 'L', 'F', 'C', 'T', 'P' };
	const char *name = function->name ? function->name : "";
	const char *source = function->source ? function->source : "?";

	switch (function->kind) {
	case FORMAT_KIND_LUA:
		snprintf(ret_text, size, "L%s:%" PRIu32 ":%s:%" PRId64, source, frame->line, name,
			 function->first_line);
		break;
	case FORMAT_KIND_NATIVE:
	case FORMAT_KIND_VM:
		snprintf(ret_text, size, "N:%s@%s", name, base_name(function->source));
		break;
	default:
		snprintf(ret_text, size, "%c:%s", kinds[function->kind], name);
		break;
	}
}

/* Root first; equal frames one above the other are written once, with their number. */
static int chains_sample(void *self, const struct format_sample *sample, struct failure *why)
{
	struct chains *chains = self;
	char text[2048], number[32];
	uint32_t i = sample->frame_count;

	chains->len = 0;
	put(chains, sample->full ? "full\t" : "partial\t");
	while (i > 0) {
		const struct format_frame *frame = &sample->frames[i - 1];
		uint32_t run = 1;

		while (run < i && sample->frames[i - 1 - run].function == frame->function &&
		       sample->frames[i - 1 - run].line == frame->line)
			run++;
		i -= run;
		describe(format_functions_get(chains->functions, frame->function), frame, text,
			 sizeof(text));
		put(chains, text);
		snprintf(number, sizeof(number), "*%" PRIu32 "%s", run, i ? ";" : "");
		put(chains, number);
	}
	put(chains, "\n");
	if (chains->too_long)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "write a chain");
	return format_sink_put(chains->sink, chains->line, chains->len, why);
}

static int chains_commit(void *self, bool final, struct failure *why)
{
	/* An empty line ends the text. */
	return format_sink_commit(((struct chains *)self)->sink, "\n", 1, final, why);
}

static const struct format_writer_ops chains_ops = {
	.name = "chains",
	.description = "one line a sample",
	.open = chains_open,
	.sample = chains_sample,
	.commit = chains_commit,
	.close = free,
};

int main(int argc, char **argv)
{
	static struct daemon_stats stats;
	static const volatile sig_atomic_t stop;
	struct daemon_output output = { .format = &chains_ops };
	struct daemon_options options = { .outputs = &output,
					  .output_count = 1,
					  .mode = DAEMON_MODE_CALLGRAPH,
					  .go_fd = -1,
					  .stop = &stop };
	char text[512] = "";
	const char *capture;
	enum daemon_end end;
	pid_t pid;

	if (argc != 5) {
		fprintf(stderr, "usage: record_chains PID RATE SECONDS OUTPUT\n");
		return 1;
	}
	pid = (pid_t)strtol(argv[1], NULL, 10);
	options.pids = &pid;
	options.pid_count = 1;
	options.rate_hz = (unsigned)strtoul(argv[2], NULL, 10);
	options.duration_s = strtod(argv[3], NULL);
	capture = getenv("LJPROF_TEST_CAPTURE");
	if (capture && strcmp(capture, "kernel") == 0)
		options.capture = DAEMON_CAPTURE_KERNEL;
	if (capture && strcmp(capture, "auto") == 0)
		options.capture = DAEMON_CAPTURE_AUTO;
	output.path = argv[4];
	end = daemon_record(&options, &stats, text, sizeof(text));
	if (end != DAEMON_END_STOPPED && end != DAEMON_END_TARGET) {
		fprintf(stderr, "record_chains: %s\n", text);
		return 1;
	}
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		printf("%s %" PRIu64 "\n", daemon_outcome_name((enum daemon_outcome)i),
		       stats.outcomes[i]);
	printf("ticks %" PRIu64 "\nlate %" PRIu64 "\nmissed %" PRIu64 "\n", stats.ticks,
	       stats.late_ticks, stats.missed_ticks);
	return 0;
}
