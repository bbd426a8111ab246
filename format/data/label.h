/* SPDX-License-Identifier: MIT */
/* What is the name of a frame? */
#ifndef FORMAT_DATA_LABEL_H
#define FORMAT_DATA_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "format/sample.h"
#include "format/text.h"

/** How a Lua function runs. */
struct label_mark {
	bool compiled, approximate;
	uint32_t trace; /**< 0: unknown. */
};

/**
 * The meaning of a frame's text, from call_tree_label or any other tool. Reverses label_describe()
 * as far as a text allows. Texts of no other form are native code.
 *
 *	burn (@burn.lua:12)	a Lua function
 *	@burn.lua:12		a Lua function without a known name
 *	trace 7 @ burn.lua:12	a trace
 *	[gc sweep]		VM work
 *	nginx [4711]		a process
 *	string.gsub		a built-in
 *	..._[j], ...~_[j]	compiled, approximate: after any of these
 *	..._[l], ..._[b], ..._[c], ..._[a], ..._[p], ..._[v]
 *				the kind, as for FORMAT_ANNOTATE_KIND
 */
struct label {
	struct format_function function; /**< Its strings point into `text`. */
	struct label_mark mark;
	uint32_t line;	 /**< Lua functions: the line in the text; otherwise 0. */
	char *text;	 /**< Owned. */
	size_t capacity; /**< Of `text`. */
};

#define LABEL_TRACE_PREFIX "trace "

/** @param label All zero at first; reusable. @return 0, or -1 with FAILURE_NO_MEMORY. */
int label_parse(struct label *label, const char *text, size_t len, struct failure *why);

void label_deinit(struct label *label);

/** Longer than people read; keeps hostile names from filling a disk. */
#define LABEL_NAME_MAX 4096

/** Append the name of a function at a line. For a Lua function or a trace, also append the
 * location: text and location of call_tree_label. label_parse() reverses this. */
void label_describe(struct format_text *text, struct format_text *location,
		    const struct format_function *function, int64_t line);

/** @return The letter of a kind for FORMAT_ANNOTATE_KIND; "": none. */
const char *label_kind_suffix(enum format_kind kind);

#endif
