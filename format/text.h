/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_TEXT_H
#define FORMAT_TEXT_H

#include "format/format.h"

/**
 * A growing string. An append that finds no memory marks the text as broken and later ones do
 * nothing, so that callers build in straight lines and ask once, with format_text_take().
 * All zero is an empty text.
 */
struct format_text {
	char *bytes; /**< Terminated once anything was appended. */
	size_t len, capacity;
	bool broken;
};

void format_text_deinit(struct format_text *text);

/** Empty the text but keep its memory; also mends a broken one. */
void format_text_clear(struct format_text *text);

void format_text_add(struct format_text *text, const void *bytes, size_t len);
void format_text_add_string(struct format_text *text, const char *string);
void format_text_addf(struct format_text *text, const char *layout, ...)
	__attribute__((format(printf, 2, 3)));

/** Append @p len bytes with control characters turned into blanks, so that it stays one line. */
void format_text_add_line(struct format_text *text, const char *bytes, size_t len);

/** @return 0 with the terminated string, borrowed; or -1 with FAILURE_NO_MEMORY. */
int format_text_take(struct format_text *text, const char **ret_string, struct failure *why);

#endif
