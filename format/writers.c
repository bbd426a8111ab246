/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "format/writers.h"

const struct format_writer_ops *const format_writers[] = {
	&format_sysprof_ops,	&format_pprof_ops,	 &format_callgrind_ops,
	&format_folded_ops,	&format_svg_ops,	 &format_speedscope_ops,
	&format_cpuprofile_ops, &format_trace_event_ops, &format_firefox_ops,
	&format_html_ops,	&format_perf_ops,	 NULL,
};

const struct format_writer_ops *format_writer_find(const char *name)
{
	for (size_t i = 0; format_writers[i]; i++)
		if (strcmp(format_writers[i]->name, name) == 0)
			return format_writers[i];
	return NULL;
}

/** Whether @p path is more than @p suffix and ends in it. */
static bool ends_in(const char *path, size_t len, const char *suffix, size_t suffix_len)
{
	return len > suffix_len && path[len - suffix_len - 1] != '/' &&
	       memcmp(path + len - suffix_len, suffix, suffix_len) == 0;
}

static bool has_suffix(const struct format_writer_ops *ops, const char *path, size_t len)
{
	const char *at = ops->suffixes;

	while (*at) {
		size_t suffix_len = strcspn(at, " ");

		if (ends_in(path, len, at, suffix_len))
			return true;
		at += suffix_len;
		at += strspn(at, " ");
	}
	return false;
}

const struct format_writer_ops *format_writer_for(const char *path)
{
	size_t len = strlen(path), bare_len = len - (ends_in(path, len, ".gz", 3) ? 3 : 0);

	for (size_t i = 0; format_writers[i]; i++)
		if (has_suffix(format_writers[i], path, len) ||
		    has_suffix(format_writers[i], path, bare_len))
			return format_writers[i];
	return NULL;
}

const char *format_state_name(enum format_state state)
{
	static const char *const names[FORMAT_STATE_COUNT] = {
		"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD", "OPT", "ASM", "TRACE",
	};

	return (unsigned)state < FORMAT_STATE_COUNT ? names[state] : "UNKNOWN";
}
