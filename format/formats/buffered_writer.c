/* SPDX-License-Identifier: MIT */
/* Which writers collect all samples and write their file when the recording ends? */
#include <stdlib.h>

#include "format/file/sink.h"
#include "format/formats/reports.h"
#include "format/formats/writers.h"
#include "format/profile/aggregator.h"

struct buffered_writer {
	struct format_sink *sink;
	const struct format_report_ops *report;
	struct aggregator aggregator;
};

static void buffered_writer_close(void *self)
{
	struct buffered_writer *buffered_writer = self;

	if (!buffered_writer)
		return;
	aggregator_deinit(&buffered_writer->aggregator);
	free(buffered_writer);
}

static int open_writer(const struct format_report_ops *report, struct format_sink *sink,
		       const struct format_functions *functions,
		       const struct format_options *options, void **ret_self, struct failure *why)
{
	struct buffered_writer *buffered_writer = calloc(1, sizeof(*buffered_writer));

	if (!buffered_writer)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "collect samples");
	buffered_writer->sink = sink;
	buffered_writer->report = report;
	if (aggregator_init(&buffered_writer->aggregator, functions, options, why)) {
		buffered_writer_close(buffered_writer);
		return -1;
	}
	format_profile_keep_order(buffered_writer->aggregator.profile, report->order);
	*ret_self = buffered_writer;
	return 0;
}

static int buffered_writer_sample(void *self, const struct format_sample *sample,
				  struct failure *why)
{
	struct buffered_writer *buffered_writer = self;

	return aggregator_sample(&buffered_writer->aggregator, sample, why);
}

static int buffered_writer_notes(void *self, const char *text, struct failure *why)
{
	struct buffered_writer *buffered_writer = self;

	return aggregator_add_notes(&buffered_writer->aggregator, text, why);
}

static int buffered_writer_commit(void *self, bool final, struct failure *why)
{
	const struct format_report_options options = { 0 };
	struct buffered_writer *buffered_writer = self;
	struct failure second;
	FILE *file;
	int result;

	if (!final)
		return 0;
	if (aggregator_take_names(&buffered_writer->aggregator, why))
		return -1;
	file = format_sink_file(buffered_writer->sink, why);
	if (!file)
		return -1;
	result = format_report_print(buffered_writer->report, NULL,
				     buffered_writer->aggregator.profile, &options, file, why);
	/* If both fail, report the first failure. */
	return format_sink_file_done(buffered_writer->sink, file, result ? &second : why) || result
		       ? -1
		       : 0;
}

static int open_pprof(struct format_sink *sink, const struct format_functions *functions,
		      const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_pprof, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_pprof_ops = {
	.name = "pprof",
	.description = "for 'go tool pprof' and other readers of its profiles",
	.suffixes = ".pb.gz .pprof",
	.is_buffered = true,
	.is_packed = true,
	.open = open_pprof,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_callgrind(struct format_sink *sink, const struct format_functions *functions,
			  const struct format_options *options, void **ret_self,
			  struct failure *why)
{
	return open_writer(&format_report_callgrind, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_callgrind_ops = {
	.name = "callgrind",
	.description = "for callgrind_annotate and kcachegrind",
	.suffixes = ".callgrind",
	.is_buffered = true,
	.open = open_callgrind,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_folded(struct format_sink *sink, const struct format_functions *functions,
		       const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_folded, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_folded_ops = {
	.name = "folded",
	.description = "one line per call chain with its count, as flame graph tools read it",
	.suffixes = ".folded",
	.is_buffered = true,
	.open = open_folded,
	.sample = buffered_writer_sample,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_svg(struct format_sink *sink, const struct format_functions *functions,
		    const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_svg, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_svg_ops = {
	.name = "svg",
	.description = "flame graph for a web browser, in one file",
	.suffixes = ".svg",
	.is_buffered = true,
	.open = open_svg,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_speedscope(struct format_sink *sink, const struct format_functions *functions,
			   const struct format_options *options, void **ret_self,
			   struct failure *why)
{
	return open_writer(&format_report_speedscope, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_speedscope_ops = {
	.name = "speedscope",
	.description = "for speedscope: each thread in the order of time",
	.suffixes = ".speedscope.json .speedscope",
	.is_buffered = true,
	.open = open_speedscope,
	.sample = buffered_writer_sample,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_cpuprofile(struct format_sink *sink, const struct format_functions *functions,
			   const struct format_options *options, void **ret_self,
			   struct failure *why)
{
	return open_writer(&format_report_cpuprofile, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_cpuprofile_ops = {
	.name = "cpuprofile",
	.description = "for Chrome's DevTools and editors: the samples in the order of time",
	.suffixes = ".cpuprofile",
	.is_buffered = true,
	.open = open_cpuprofile,
	.sample = buffered_writer_sample,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_trace_event(struct format_sink *sink, const struct format_functions *functions,
			    const struct format_options *options, void **ret_self,
			    struct failure *why)
{
	return open_writer(&format_report_trace_event, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_trace_event_ops = {
	.name = "trace-event",
	.description = "for Perfetto and chrome://tracing: calls, phases and heap over time",
	.suffixes = ".trace.json",
	.is_buffered = true,
	.open = open_trace_event,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_firefox(struct format_sink *sink, const struct format_functions *functions,
			const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_firefox, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_firefox_ops = {
	.name = "firefox",
	.description = "for the Firefox Profiler: threads, categories, phases and heap over time",
	.suffixes = ".firefox.json",
	.is_buffered = true,
	.open = open_firefox,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_perf(struct format_sink *sink, const struct format_functions *functions,
		     const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_perf, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_perf_ops = {
	.name = "perf",
	.description = "samples as 'perf script' prints them, for tools that read it",
	.suffixes = ".perf .perf.txt",
	.is_buffered = true,
	.open = open_perf,
	.sample = buffered_writer_sample,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};

static int open_html(struct format_sink *sink, const struct format_functions *functions,
		     const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_writer(&format_report_html, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_html_ops = {
	.name = "html",
	.description = "page with flame graphs and tables for a web browser, in one file",
	.suffixes = ".html",
	.is_buffered = true,
	.open = open_html,
	.sample = buffered_writer_sample,
	.notes = buffered_writer_notes,
	.commit = buffered_writer_commit,
	.close = buffered_writer_close,
};
