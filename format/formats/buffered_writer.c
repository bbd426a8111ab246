/* SPDX-License-Identifier: MIT */
/* Writers of formats that are not streams: what is recorded is summed up, and written when the
 * recording ends. */
#include <stdlib.h>

#include "format/file/sink.h"
#include "format/formats/reports.h"
#include "format/formats/writers.h"
#include "format/profile/aggregator.h"

struct whole {
	struct format_sink *sink;
	const struct format_report_ops *report;
	struct collect collect;
};

static void whole_close(void *self)
{
	struct whole *whole = self;

	if (!whole)
		return;
	collect_deinit(&whole->collect);
	free(whole);
}

static int open_whole(const struct format_report_ops *report, struct format_sink *sink,
		      const struct format_functions *functions,
		      const struct format_options *options, void **ret_self, struct failure *why)
{
	struct whole *whole = calloc(1, sizeof(*whole));

	if (!whole)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "collect samples");
	whole->sink = sink;
	whole->report = report;
	if (collect_init(&whole->collect, functions, options, why)) {
		whole_close(whole);
		return -1;
	}
	if (report->needs_order)
		format_profile_keep_order(whole->collect.profile);
	*ret_self = whole;
	return 0;
}

static int whole_sample(void *self, const struct format_sample *sample, struct failure *why)
{
	struct whole *whole = self;

	return collect_sample(&whole->collect, sample, why);
}

static int whole_account(void *self, const char *text, struct failure *why)
{
	struct whole *whole = self;

	return collect_account(&whole->collect, text, why);
}

static int whole_commit(void *self, bool final, struct failure *why)
{
	const struct format_report_options options = { 0 };
	struct whole *whole = self;
	struct failure second;
	FILE *file;
	int result;

	if (!final)
		return 0;
	file = format_sink_file(whole->sink, why);
	if (!file)
		return -1;
	result = whole->report->print(whole->collect.profile, &options, file, why);
	/* Of two failures the first one is reported. */
	return format_sink_file_done(whole->sink, file, result ? &second : why) || result ? -1 : 0;
}

static int open_pprof(struct format_sink *sink, const struct format_functions *functions,
		      const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_pprof, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_pprof_ops = {
	.name = "pprof",
	.description = "for 'go tool pprof' and all that read its profiles",
	.suffixes = ".pb.gz .pprof",
	.is_whole = true,
	.is_packed = true,
	.open = open_pprof,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_callgrind(struct format_sink *sink, const struct format_functions *functions,
			  const struct format_options *options, void **ret_self,
			  struct failure *why)
{
	return open_whole(&format_report_callgrind, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_callgrind_ops = {
	.name = "callgrind",
	.description = "for callgrind_annotate and kcachegrind",
	.suffixes = ".callgrind",
	.is_whole = true,
	.open = open_callgrind,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_folded(struct format_sink *sink, const struct format_functions *functions,
		       const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_folded, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_folded_ops = {
	.name = "folded",
	.description = "one line per call chain with its count, as flame graph tools read it",
	.suffixes = ".folded",
	.is_whole = true,
	.open = open_folded,
	.sample = whole_sample,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_svg(struct format_sink *sink, const struct format_functions *functions,
		    const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_svg, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_svg_ops = {
	.name = "svg",
	.description = "flame graph for a web browser, in one file",
	.suffixes = ".svg",
	.is_whole = true,
	.open = open_svg,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_speedscope(struct format_sink *sink, const struct format_functions *functions,
			   const struct format_options *options, void **ret_self,
			   struct failure *why)
{
	return open_whole(&format_report_speedscope, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_speedscope_ops = {
	.name = "speedscope",
	.description = "for speedscope: each thread in the order of time",
	.suffixes = ".speedscope.json .speedscope",
	.is_whole = true,
	.open = open_speedscope,
	.sample = whole_sample,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_cpuprofile(struct format_sink *sink, const struct format_functions *functions,
			   const struct format_options *options, void **ret_self,
			   struct failure *why)
{
	return open_whole(&format_report_cpuprofile, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_cpuprofile_ops = {
	.name = "cpuprofile",
	.description = "for Chrome's DevTools and editors: the samples in the order of time",
	.suffixes = ".cpuprofile",
	.is_whole = true,
	.open = open_cpuprofile,
	.sample = whole_sample,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_trace_event(struct format_sink *sink, const struct format_functions *functions,
			    const struct format_options *options, void **ret_self,
			    struct failure *why)
{
	return open_whole(&format_report_trace_event, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_trace_event_ops = {
	.name = "trace-event",
	.description = "for Perfetto and chrome://tracing: calls, phases and heap over time",
	.suffixes = ".trace.json",
	.is_whole = true,
	.open = open_trace_event,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_firefox(struct format_sink *sink, const struct format_functions *functions,
			const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_firefox, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_firefox_ops = {
	.name = "firefox",
	.description = "for the Firefox Profiler: threads, categories, phases and heap over time",
	.suffixes = ".firefox.json",
	.is_whole = true,
	.open = open_firefox,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_perf(struct format_sink *sink, const struct format_functions *functions,
		     const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_perf, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_perf_ops = {
	.name = "perf",
	.description = "samples as 'perf script' prints them, for all that reads that",
	.suffixes = ".perf .perf.txt",
	.is_whole = true,
	.open = open_perf,
	.sample = whole_sample,
	.commit = whole_commit,
	.close = whole_close,
};

static int open_html(struct format_sink *sink, const struct format_functions *functions,
		     const struct format_options *options, void **ret_self, struct failure *why)
{
	return open_whole(&format_report_html, sink, functions, options, ret_self, why);
}

const struct format_writer_ops format_html_ops = {
	.name = "html",
	.description = "page with flame graphs and tables for a web browser, in one file",
	.suffixes = ".html",
	.is_whole = true,
	.open = open_html,
	.sample = whole_sample,
	.account = whole_account,
	.commit = whole_commit,
	.close = whole_close,
};
