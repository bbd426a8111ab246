/* SPDX-License-Identifier: MIT */
/* How is foreign text made safe to show? */
#ifndef FORMAT_TEXT_H
#define FORMAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/**
 * Describe in one line why @p file could not be read: "FILE: truncated item at byte 1234".
 * @param ret_text Always terminated; at most @p len bytes are written.
 */
void format_describe_failure(const struct failure *why, const char *file, char *ret_text,
			     size_t len);

/** Make foreign text safe for a terminal, in place. Blanks replace control characters, including
 * 8-bit ones (also if the text is not UTF-8), and characters that change the writing direction.
 * All other bytes stay. */
void format_clean_text(char *text, size_t len);

/** Make text valid for JSON, in place: a question mark replaces each byte that is not UTF-8. */
void format_clean_utf8(char *text, size_t len);

/**
 * Copy foreign text, made safe by both functions above.
 * @return Freed by the caller; NULL if memory is out.
 */
char *format_clean_copy(const char *text);

/** @return How many of @p len bytes fit into @p max bytes without cutting a UTF-8 character. */
size_t format_text_cut(const char *text, size_t len, size_t max);

/* ---- Texts that grow -------------------------------------------------------------------- */

/**
 * A growing string. If an append runs out of memory, the text is marked broken and later appends do
 * nothing. Callers therefore append without checks and test once, with format_text_take().
 * All zero is an empty text.
 */
struct format_text {
	char *bytes; /**< Terminated after the first append. */
	size_t len, capacity;
	bool broken;
};

void format_text_deinit(struct format_text *text);

/** Empty the text but keep its memory. Also repairs a broken text. */
void format_text_clear(struct format_text *text);

void format_text_add(struct format_text *text, const void *bytes, size_t len);
void format_text_add_string(struct format_text *text, const char *string);
void format_text_addf(struct format_text *text, const char *layout, ...)
	__attribute__((format(printf, 2, 3)));

/** Append @p len bytes as a part of one line: blanks replace control characters. */
void format_text_add_line(struct format_text *text, const char *bytes, size_t len);

/** Append @p len bytes, made safe as by format_clean_text(). */
void format_text_add_shown(struct format_text *text, const char *bytes, size_t len);

/**
 * Decode the UTF-8 character at the start of @p len bytes.
 * @return Its length in bytes, or 0 if the bytes are not UTF-8; then @p ret_code stays unset.
 * Source: Unicode 15, table 3-7.
 */
size_t format_text_character(const char *text, size_t len, uint32_t *ret_code);

/** @return 0 with the terminated string, borrowed; or -1 with FAILURE_NO_MEMORY. */
int format_text_take(struct format_text *text, const char **ret_string, struct failure *why);

#endif
