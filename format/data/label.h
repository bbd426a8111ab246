/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_DATA_LABEL_H
#define FORMAT_DATA_LABEL_H

#include "format/sysprof/symbol_encoding.h"
#include "format/sample.h"

/**
 * What a frame's text says, fold_label's as any other tool's: undoes fold_describe() as far as a
 * text can. All that is not known to be something else is native code.
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
	struct names_mark mark;
	uint32_t line;	 /**< Of a Lua function, as in the text; else 0. */
	char *text;	 /**< Owned. */
	size_t capacity; /**< Of that. */
};

/** @param label All zero at first; may be used again. @return 0, or -1 with FAILURE_NO_MEMORY. */
int label_parse(struct label *label, const char *text, size_t len, struct failure *why);

void label_deinit(struct label *label);

#endif
