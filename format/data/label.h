/* SPDX-License-Identifier: MIT */
/* What a frame is called. */
#ifndef FORMAT_DATA_LABEL_H
#define FORMAT_DATA_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "format/sample.h"
#include "format/text.h"

/** How a Lua function runs. */
struct label_mark {
	bool compiled, approximate;
	uint32_t trace; /**< 0 unknown. */
};

/**
 * What a frame's text says, call_tree_label's as any other tool's: undoes label_describe() as far
 *as a text can. All that is not known to be something else is native code.
 *
 *	burn (@burn.lua:12)	a Lua function
 *	@burn.lua:12		the same, of which no name is known
 *	trace 7 @ burn.lua:12	a trace
 *	[gc sweep]		an activity
 *	nginx [4711]		a process
 *	string.gsub		a function built into LuaJIT
 *	..._[j], ...~_[j]	compiled, approximate: behind any of these
 *	..._[l], ..._[b], ..._[c], ..._[a], ..._[p]	the kind, as FORMAT_ANNOTATE_KIND says it
 */
struct label {
	struct format_function function; /**< Its strings lie in `text`. */
	struct label_mark mark;
	uint32_t line;	 /**< Of a Lua function, as in the text; else 0. */
	char *text;	 /**< Owned. */
	size_t capacity; /**< Of that. */
};

#define LABEL_TRACE_PREFIX "trace "

/** @param label All zero at first; may be used again. @return 0, or -1 with FAILURE_NO_MEMORY. */
int label_parse(struct label *label, const char *text, size_t len, struct failure *why);

void label_deinit(struct label *label);

/** Longer than names that people can read; keeps hostile ones from filling a disk. */
#define LABEL_NAME_MAX 4096

/** Append what a function is called at a line, and, of a Lua function or a trace, its place:
 * call_tree_label's text and place. label_parse() undoes that. */
void label_describe(struct format_text *text, struct format_text *location,
		    const struct format_function *function, int64_t line);

/** Letter of a kind in FORMAT_ANNOTATE_KIND; "" none. */
const char *label_kind_suffix(enum format_kind kind);

#endif
