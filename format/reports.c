/* SPDX-License-Identifier: MIT */
#include "format/reports.h"

#include <string.h>

const struct format_report_ops *const format_reports[] = {
	&format_report_top,
	&format_report_folded,
	&format_report_svg,
	&format_report_pprof,
	&format_report_json,
	&format_report_counters,
	NULL,
};

const struct format_report_ops *format_report_find(const char *name)
{
	for (size_t i = 0; format_reports[i]; i++)
		if (strcmp(format_reports[i]->name, name) == 0)
			return format_reports[i];
	return NULL;
}

int report_need_chains(const struct format_profile *profile, struct failure *why)
{
	if (format_profile_kind(profile) == FORMAT_STREAM_SYSPROF)
		return 0;
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0,
			   "report call chains of a memory profile");
}
