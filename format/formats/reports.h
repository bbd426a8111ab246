/* SPDX-License-Identifier: MIT */
/* Private to format: which functions implement each report? */
#ifndef FORMAT_FORMATS_REPORTS_H
#define FORMAT_FORMATS_REPORTS_H

#include "format/memprof/heap.h"
#include "format/report.h"

/** The implementations behind format_reports[]. */
extern const struct format_report_ops format_report_callgrind;
extern const struct format_report_ops format_report_counters;
extern const struct format_report_ops format_report_cpuprofile;
extern const struct format_report_ops format_report_firefox;
extern const struct format_report_ops format_report_folded;
extern const struct format_report_ops format_report_html;
extern const struct format_report_ops format_report_json;
extern const struct format_report_ops format_report_leaks;
extern const struct format_report_ops format_report_markdown;
extern const struct format_report_ops format_report_perf;
extern const struct format_report_ops format_report_pprof;
extern const struct format_report_ops format_report_speedscope;
extern const struct format_report_ops format_report_svg;
extern const struct format_report_ops format_report_top;
extern const struct format_report_ops format_report_trace_event;

/** Print a memory profile as Tarantool's parser prints it; the report top of such a profile. */
int report_memory_print(const struct heap *heap, const struct format_report_options *options,
			FILE *file, struct failure *why);

#endif
