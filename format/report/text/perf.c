/* SPDX-License-Identifier: MIT */
/*
 * How are samples written as the text of "perf script"? FlameGraph's stackcollapse-perf.pl,
 * speedscope, the Firefox Profiler and others read it. A sample of several ticks is written once
 * per tick, because most readers count samples.
 * Source of the format: perf-script(1) of Linux 6.1, fields
 * comm,pid,tid,time,period,event,ip,sym,dso.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/formats/reports.h"
#include "format/report/timeline_export.h"

/** Bound of repeated samples. A profile whose format adds up samples could otherwise fill a disk.
 */
#define REPEATS_MAX 1000000

struct perf {
	struct timeline_export timeline_export;
	char *lines;	 /* Lines of all labels, concatenated. */
	size_t *line_at; /* Offset by label, and the end. */
};

/** Replace characters that end a name or a line for readers. */
static void put_clean(const char *text, size_t len, const char *unwanted, FILE *file)
{
	for (size_t i = 0; i < len; i++)
		fputc((unsigned char)text[i] < ' ' || strchr(unwanted, text[i]) ? '_' : text[i],
		      file);
}

/** Readers drop "+0x1234", which perf adds to names, and everything after a round bracket. In our
 * names both are part of the name, so they are replaced. */
static void put_name(const char *text, FILE *file)
{
	const char *offset = strstr(text, "+0x");

	for (const char *at = text; *at; at++) {
		if (at == offset)
			fputc('@', file);
		else if (*at == '(' || *at == ')')
			fputc(*at == '(' ? '[' : ']', file);
		else
			put_clean(at, 1, "", file);
	}
}

/** Write the module in the last brackets of the line, where perf writes the file. */
static void put_module(const struct call_tree_label *label, FILE *file)
{
	uint64_t line;
	size_t len;
	const char *location = timeline_export_location(label, &len, &line);

	fputs(" (", file);
	if (location)
		put_clean(location, len, " ()", file);
	else
		put_clean(format_kind_name(label->kind), strlen(format_kind_name(label->kind)),
			  " ()", file);
	fputs(")\n", file);
}

/** Build the line of each label once, because millions of samples share them. */
static int make_lines(struct perf *perf, struct failure *why)
{
	const struct call_tree *call_tree = &perf->timeline_export.call_tree;
	size_t len;
	FILE *file = open_memstream(&perf->lines, &len);
	bool failed;

	perf->line_at = calloc((size_t)call_tree->label_count + 1, sizeof(*perf->line_at));
	for (uint32_t i = 0; file && perf->line_at && i < call_tree->label_count; i++) {
		/* Readers require an address and keep the name that follows it. */
		fprintf(file, "\t%16" PRIx32 " ", i + 1);
		put_name(call_tree->labels[i].text, file);
		put_module(&call_tree->labels[i], file);
		perf->line_at[i + 1] = (size_t)ftell(file);
	}
	failed = !file || !perf->line_at || ferror(file);
	if (file)
		failed |= fclose(file) != 0;
	return failed ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the labels") : 0;
}

static void put_chain(const struct perf *perf, const struct call_tree_chain *chain, FILE *file)
{
	for (uint32_t i = chain->len; i-- > 0;) {
		size_t at = perf->line_at[chain->labels[i]];

		fwrite(perf->lines + at, 1, perf->line_at[chain->labels[i] + 1] - at, file);
	}
	fputc('\n', file);
}

static void put_event(struct perf *perf, const struct chart_event *event, FILE *file)
{
	struct timeline_export *timeline_export = &perf->timeline_export;
	const struct chart_track *track = &timeline_export->chart.tracks[event->track];
	const struct call_tree_chain *chain =
		&timeline_export->call_tree.chains[timeline_export_chain(timeline_export, event)];
	uint64_t period_ns = timeline_export->chart.period_ns;
	const char *name = track->name && *track->name ? track->name : "luajit";

	for (uint64_t i = 0; i < event->count; i++) {
		uint64_t ns = event->begin_ns + i * period_ns;

		put_clean(name, strlen(name), " ", file);
		fprintf(file,
			" %7" PRIu32 "/%-7" PRIu32 " %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64
			" %s: \n",
			(uint32_t)track->pid, (uint32_t)track->tid, ns / 1000000000,
			ns / 1000 % 1000000, period_ns,
			timeline_export->profile->is_wall ? "wall-clock" : "cpu-clock");
		put_chain(perf, chain, file);
	}
}

/** Check the bound before the first byte is written. */
static int check_repeats(const struct chart *chart, struct failure *why)
{
	uint64_t repeats = 0;

	for (size_t i = 0; i < chart->event_count && repeats <= REPEATS_MAX; i++)
		repeats += chart->events[i].count - 1;
	return repeats <= REPEATS_MAX ? 0
				      : failure_set(why, FAILURE_LIMIT, 0, 0, 0,
						    "more than 1000000 repeated samples");
}

static int perf_print(const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct perf perf = { 0 };
	struct chart *chart = &perf.timeline_export.chart;
	int result;

	if (timeline_export_need_samples(profile, why) ||
	    timeline_export_init(&perf.timeline_export, profile, options, file, why))
		return -1;
	chart_sort_by_time(chart);
	result = check_repeats(chart, why) ? -1 : make_lines(&perf, why);
	for (size_t i = 0; i < chart->event_count && result == 0; i++)
		put_event(&perf, &chart->events[i], file);
	free(perf.lines);
	free(perf.line_at);
	return timeline_export_done(&perf.timeline_export, result, why);
}

const struct format_report_ops format_report_perf = {
	.name = "perf",
	.description = "samples as 'perf script' prints them, for tools that read it",
	.order = FORMAT_ORDER_NEEDED,
	.print = perf_print,
};
