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

#endif
