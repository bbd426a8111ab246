/* SPDX-License-Identifier: MIT */
/* How is foreign text made fit for people? */
#ifndef FORMAT_TEXT_H
#define FORMAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/**
 * Describe why @p file could not be read, in one line such as "FILE: truncated item at byte 1234".
 * @param ret_text Always terminated; at most @p len bytes are written.
 */
void format_describe_failure(const struct failure *why, const char *file, char *ret_text,
			     size_t len);

/**
 * Make foreign text fit for a terminal, in place: blanks for what that would obey. These are
 * control characters, those of 8 bits too, also where the text is no UTF-8, and characters that
 * turn the direction of writing. All other bytes stay.
 */
void format_clean_text(char *text, size_t len);

/** Make text fit for JSON, in place: a question mark for each byte that is no UTF-8. */
void format_clean_utf8(char *text, size_t len);

/** How much of a text of @p len bytes to show where there is room for @p max: no more, and no part
 * of a character of UTF-8. */
size_t format_text_cut(const char *text, size_t len, size_t max);

/* ---- Texts that grow -------------------------------------------------------------------- */

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
