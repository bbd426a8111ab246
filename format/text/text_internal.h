/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_TEXT_TEXT_INTERNAL_H
#define FORMAT_TEXT_TEXT_INTERNAL_H

#include "attach/failure.h"

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

/** Append @p len bytes for people, as format_clean_text() leaves them. */
void format_text_add_shown(struct format_text *text, const char *bytes, size_t len);

/**
 * The UTF-8 character at the beginning of @p len bytes.
 * @return its bytes, or 0 where there is none: @p ret_code is not set then.
 * Source: Unicode 15, table 3-7.
 */
size_t format_text_character(const char *text, size_t len, uint32_t *ret_code);

/** @return 0 with the terminated string, borrowed; or -1 with FAILURE_NO_MEMORY. */
int format_text_take(struct format_text *text, const char **ret_string, struct failure *why);

#endif
