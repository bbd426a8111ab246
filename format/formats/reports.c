/* SPDX-License-Identifier: MIT */
/* Which reports are there, and which one does a name or a file mean? */
#include "format/formats/reports.h"

#include <string.h>

#include "format/profile/profile_internal.h"

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

/** Apply a view. @param ret_view The caller destroys it; NULL: the profile is shown as it is. */
static int make_view(const struct format_report_ops *report, const struct format_view *asked,
		     const struct format_profile *profile, struct format_profile **ret_view,
		     struct failure *why)
{
	struct format_view view = *asked;

	*ret_view = NULL;
	/* A profile of another kind of program is shown as it is. */
	if (view.native == FORMAT_NATIVE_DEFAULT)
		view.native = report->is_view && profile && format_profile_has_lua(profile)
				      ? FORMAT_NATIVE_PROGRAM
				      : FORMAT_NATIVE_ALL;
	/* A memory profile has locations, not call chains. */
	if (!profile || profile->kind != FORMAT_STREAM_SYSPROF || profile->memory_values ||
	    !format_view_changes(&view))
		return 0;
	return format_profile_view(profile, &view, ret_view, why);
}

int format_report_print(const struct format_report_ops *report, const struct format_profile *base,
			const struct format_profile *profile,
			const struct format_report_options *options, FILE *file,
			struct failure *why)
{
	struct format_profile *base_view = NULL, *view = NULL;
	int result = -1;

	if (make_view(report, &options->view, base, &base_view, why) == 0 &&
	    make_view(report, &options->view, profile, &view, why) == 0)
		result = base ? report->diff(base_view ? base_view : base, view ? view : profile,
					     options, file, why)
			      : report->print(view ? view : profile, options, file, why);
	format_profile_destroy(base_view);
	format_profile_destroy(view);
	return result;
}

const struct format_report_ops *format_report_find(const char *name)
{
	for (size_t i = 0; format_reports[i]; i++)
		if (strcmp(format_reports[i]->name, name) == 0)
			return format_reports[i];
	return NULL;
}

const char *format_report_suffixes(const struct format_report_ops *report)
{
	/* ljrecord does not write these. */
	static const struct {
		const char *name, *suffixes;
	} others[] = { { "top", ".txt .top" },
		       { "markdown", ".md .markdown" },
		       { "json", ".json" },
		       { "leaks", ".leaks" },
		       { "counters", ".counters" } };
	const struct format_writer_ops *writer = format_writer_find(report->name);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].name, report->name) == 0)
			return others[i].suffixes;
	return writer ? writer->suffixes : "";
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
