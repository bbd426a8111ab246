/* SPDX-License-Identifier: MIT */
/* Text for a screen of fixed width: foreign names, bars and sparklines, measured in columns. */
#ifndef CLI_TOP_TERMINAL_TOP_COLUMNS_H
#define CLI_TOP_TERMINAL_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/text.h"

/** Which end of a text stays where it is too long. */
enum top_cut {
	TOP_CUT_END,   /**< Its begin: names. */
	TOP_CUT_BEGIN, /**< Its end: paths. */
};

/**
 * Append text of the target's, fit for a terminal and no wider than @p columns; a mark stands where
 * something was cut off. Control characters become blanks, and what is no character, or has no
 * known width, question marks. Of characters without a width of their own a few stay with the one
 * before them.
 * @param utf8 The terminal shows UTF-8; else only ASCII is left.
 * @return Columns that were appended. Widths are those of the locale, wcwidth(3).
 */
size_t top_columns_add(struct format_text *text, const char *bytes, size_t columns,
		       enum top_cut cut, bool utf8);

/** The same, and blanks behind it, so that it is as wide as @p columns. */
void top_columns_add_padded(struct format_text *text, const char *bytes, size_t columns,
			    enum top_cut cut, bool utf8);

/** Columns of such a text if nothing is cut off. */
size_t top_columns_width(const char *bytes, bool utf8);

/**
 * Append a line of heights, one a column, for the last @p columns of @p count values, the newest at
 * the right; blanks stand for those that do not exist. All but 0 look different from 0.
 * @param most What fills the height; 0: the largest of the values that are shown.
 */
void top_columns_add_spark(struct format_text *text, const uint64_t *values, size_t count,
			   uint64_t most, size_t columns, bool utf8);

/**
 * Share out @p columns among parts by their size, so that they are filled exactly: the largest
 * remainders get what rounding leaves. All 0 where all parts are.
 * @param count At most TOP_PARTS_MAX.
 */
enum { TOP_PARTS_MAX = 16 };
void top_columns_share(const uint64_t *parts, size_t count, size_t columns, size_t *ret_columns);

/** Write a number of bytes, such as "12.3M", in at most 7 characters. */
void top_columns_bytes(char *ret_text, size_t len, uint64_t bytes);

/** Write a time, such as "12:34" or "2d03h", in at most 7 characters. */
void top_columns_time(char *ret_text, size_t len, uint64_t ns);

#endif
