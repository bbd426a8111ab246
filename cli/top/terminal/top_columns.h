/* SPDX-License-Identifier: MIT */
/* How does text fit a screen of fixed width: foreign names, bars and sparklines, measured in
 * columns? */
#ifndef CLI_TOP_TERMINAL_TOP_COLUMNS_H
#define CLI_TOP_TERMINAL_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/text.h"

/** Which end of a long text is cut off. */
enum top_cut {
	TOP_CUT_END,   /**< Keep the start: names. */
	TOP_CUT_BEGIN, /**< Keep the end: paths. */
};

/**
 * Append a text of the target, safe for a terminal and at most @p columns wide; a mark replaces
 * what is cut off. Control characters become blanks. Invalid characters, and characters of unknown
 * width, become question marks. A few characters without width are kept after each character.
 * @param utf8 The terminal shows UTF-8; else only ASCII remains.
 * @return Appended columns. Widths are those of the locale, wcwidth(3).
 */
size_t top_columns_add(struct format_text *text, const char *bytes, size_t columns,
		       enum top_cut cut, bool utf8);

/** Append such a text, padded with blanks to @p columns. */
void top_columns_add_padded(struct format_text *text, const char *bytes, size_t columns,
			    enum top_cut cut, bool utf8);

/** Columns of such a text if nothing is cut off. */
size_t top_columns_width(const char *bytes, bool utf8);

/**
 * Append a sparkline of the last @p columns of @p count values, one column each, the newest at the
 * right. Missing values are blank. Every value above 0 looks different from 0.
 * @param most Value at full height; 0: the largest visible value.
 */
void top_columns_add_spark(struct format_text *text, const uint64_t *values, size_t count,
			   uint64_t most, size_t columns, bool utf8);

/**
 * Distribute @p columns among parts by their size, so that the sum is exact: the largest remainders
 * get the columns that rounding leaves. All are 0 if all parts are.
 * @param count At most TOP_PARTS_MAX.
 */
enum { TOP_PARTS_MAX = 16 };
void top_columns_share(const uint64_t *parts, size_t count, size_t columns, size_t *ret_columns);

/** Write a number of bytes, such as "12.3M", in at most 7 characters. */
void top_columns_bytes(char *ret_text, size_t len, uint64_t bytes);

/** Write a time, such as "12:34" or "2d03h", in at most 7 characters. */
void top_columns_time(char *ret_text, size_t len, uint64_t ns);

#endif
