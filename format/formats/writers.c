/* SPDX-License-Identifier: MIT */
/* Which writers are there, and which one does a name or a file mean? */
#include <string.h>

#include "format/formats/writers.h"

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

/** Whether @p path ends in @p suffix and has a name before it. */
static bool ends_in(const char *path, size_t len, const char *suffix, size_t suffix_len)
{
	return len > suffix_len && path[len - suffix_len - 1] != '/' &&
	       memcmp(path + len - suffix_len, suffix, suffix_len) == 0;
}

/** @return Length of the format's longest suffix at the end of the path; 0: none. */
static size_t suffix_of(const struct format_writer_ops *ops, const char *path, size_t len)
{
	const char *at = ops->suffixes;
	size_t longest = 0;

	while (*at) {
		size_t suffix_len = strcspn(at, " ");

		if (suffix_len > longest && ends_in(path, len, at, suffix_len))
			longest = suffix_len;
		at += suffix_len;
		at += strspn(at, " ");
	}
	return longest;
}

static bool has_suffix(const struct format_writer_ops *ops, const char *path, size_t len)
{
	return suffix_of(ops, path, len) > 0;
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

bool format_has_suffix(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	len -= ends_in(name, len, ".gz", 3) ? 3 : 0;
	return len > 1 && memchr(name + 1, '.', len - 1);
}

size_t format_stem_len(const char *path)
{
	size_t len = strlen(path), bare_len = len - (ends_in(path, len, ".gz", 3) ? 3 : 0);
	size_t stem_len = len;

	for (size_t i = 0; format_writers[i]; i++) {
		size_t packed = suffix_of(format_writers[i], path, len);
		size_t bare = suffix_of(format_writers[i], path, bare_len);

		if (packed > 0 && len - packed < stem_len)
			stem_len = len - packed;
		if (bare > 0 && bare_len - bare < stem_len)
			stem_len = bare_len - bare;
	}
	if (stem_len == len)
		stem_len = bare_len;
	if (stem_len == len)
		for (size_t i = len; i > 1 && path[i - 1] != '/' && path[i - 2] != '/'; i--)
			if (path[i - 1] == '.')
				return i - 1;
	return stem_len;
}
