/* SPDX-License-Identifier: MIT */
/* Private to format: which functions implement each writer? */
#ifndef FORMAT_FORMATS_WRITERS_H
#define FORMAT_FORMATS_WRITERS_H

#include "format/writer.h"

/** The implementations behind format_writers[]. */
extern const struct format_writer_ops format_sysprof_ops;
extern const struct format_writer_ops format_pprof_ops;
extern const struct format_writer_ops format_callgrind_ops;
extern const struct format_writer_ops format_folded_ops;
extern const struct format_writer_ops format_svg_ops;
extern const struct format_writer_ops format_speedscope_ops;
extern const struct format_writer_ops format_cpuprofile_ops;
extern const struct format_writer_ops format_trace_event_ops;
extern const struct format_writer_ops format_firefox_ops;
extern const struct format_writer_ops format_perf_ops;
extern const struct format_writer_ops format_html_ops;

#endif
