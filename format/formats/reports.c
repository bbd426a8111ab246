/* SPDX-License-Identifier: MIT */
/* Which reports are there, and which one does a name or a file mean? */
#include "format/formats/reports.h"

#include <string.h>

const struct format_report_ops *const format_reports[] = {
	&format_report_top,	    &format_report_folded,
	&format_report_svg,	    &format_report_html,
	&format_report_pprof,	    &format_report_callgrind,
	&format_report_speedscope,  &format_report_cpuprofile,
	&format_report_trace_event, &format_report_firefox,
	&format_report_perf,	    &format_report_json,
	&format_report_markdown,    &format_report_leaks,
	&format_report_counters,    NULL,
};

const struct format_report_ops *format_report_find(const char *name)
{
	for (size_t i = 0; format_reports[i]; i++)
		if (strcmp(format_reports[i]->name, name) == 0)
			return format_reports[i];
	return NULL;
}

const struct format_report_ops *format_report_for(const char *path)
{
	const struct format_writer_ops *writer = format_writer_for(path);
	size_t len = strlen(path);
	char end[16];
	const char *dot;

	if (writer)
		return format_report_find(writer->name);
	/* ljrecord does not write these reports, so their file suffix is their name. */
	if (len > 3 && strcmp(path + len - 3, ".gz") == 0)
		len -= 3;
	dot = memrchr(path, '.', len);
	if (!dot || dot == path || dot[-1] == '/' || len - (size_t)(dot + 1 - path) >= sizeof(end))
		return NULL;
	snprintf(end, sizeof(end), "%.*s", (int)(len - (size_t)(dot + 1 - path)), dot + 1);
	if (strcmp(end, "txt") == 0)
		return format_report_find("top");
	return format_report_find(strcmp(end, "md") == 0 ? "markdown" : end);
}
