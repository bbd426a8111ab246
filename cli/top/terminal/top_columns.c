/* SPDX-License-Identifier: MIT */
/* How is text measured and cut by its columns? */
#include "cli/top/terminal/top_columns.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

enum {
	/* Most accents of one character. More would only paint over other lines. */
	MARKS_MAX = 2,
	HEIGHTS = 8,
};

/** One character of a foreign text. */
struct glyph {
	size_t size; /* bytes of the text */
	int width;   /* columns; 0: belongs to the character before it */
	char ascii;  /* shown instead of the bytes; 0: the bytes are shown */
};

static struct glyph read_glyph(const char *bytes, size_t len, bool utf8)
{
	struct glyph glyph = { .size = 1, .width = 1, .ascii = '?' };
	uint32_t code = 0;
	char shown[4];
	size_t size = format_text_character(bytes, len, &code);

	if (size == 0)
		return glyph;
	glyph.size = size;
	memcpy(shown, bytes, size);
	format_clean_text(shown, size);
	if (shown[0] == ' ') {
		glyph.ascii = ' ';
		return glyph;
	}
	if (size == 1) {
		glyph.ascii = 0;
		return glyph;
	}
	if (!utf8 || wcwidth((wchar_t)code) < 0)
		return glyph;
	glyph.width = wcwidth((wchar_t)code);
	glyph.ascii = 0;
	return glyph;
}

static void add_glyph(struct format_text *text, const char *bytes, struct glyph glyph)
{
	if (glyph.ascii)
		format_text_add(text, &glyph.ascii, 1);
	else
		format_text_add(text, bytes, glyph.size);
}

/** A run of glyphs that ends at a width. */
struct run {
	size_t size, columns;
};

/* Take as many glyphs as fit. @param text Output; NULL only measures. */
static struct run take_run(struct format_text *text, const char *bytes, size_t len, size_t columns,
			   bool utf8)
{
	struct run run = { 0 };
	unsigned marks = MARKS_MAX; /* none before the first character */

	while (run.size < len) {
		struct glyph glyph = read_glyph(bytes + run.size, len - run.size, utf8);

		if (run.columns + (size_t)glyph.width > columns)
			break;
		marks = glyph.width ? 0 : marks + 1;
		if (text && marks <= MARKS_MAX)
			add_glyph(text, bytes + run.size, glyph);
		run.size += glyph.size;
		run.columns += (size_t)glyph.width;
	}
	return run;
}

size_t top_columns_width(const char *bytes, bool utf8)
{
	return take_run(NULL, bytes, strlen(bytes), SIZE_MAX / 2, utf8).columns;
}

static void add_mark(struct format_text *text, bool utf8)
{
	format_text_add_string(text, utf8 ? "\xe2\x80\xa6" : "~");
}

/* @param width Width of the whole text, more than columns. */
static size_t add_end(struct format_text *text, const char *bytes, size_t len, size_t width,
		      size_t columns, bool utf8)
{
	/* Leave out whole characters, never half of a wide one. */
	size_t out = 0, size = 0;

	add_mark(text, utf8);
	while (size < len) {
		struct glyph glyph = read_glyph(bytes + size, len - size, utf8);

		if (out >= width - (columns - 1) && glyph.width)
			break;
		out += (size_t)glyph.width;
		size += glyph.size;
	}
	return 1 + take_run(text, bytes + size, len - size, columns - 1, utf8).columns;
}

size_t top_columns_add(struct format_text *text, const char *bytes, size_t columns,
		       enum top_cut cut, bool utf8)
{
	size_t len = strlen(bytes), width = top_columns_width(bytes, utf8), used;

	if (columns == 0)
		return 0;
	if (width <= columns)
		return take_run(text, bytes, len, columns, utf8).columns;
	if (cut == TOP_CUT_BEGIN)
		return add_end(text, bytes, len, width, columns, utf8);
	used = take_run(text, bytes, len, columns - 1, utf8).columns;
	add_mark(text, utf8);
	return used + 1;
}

void top_columns_add_padded(struct format_text *text, const char *bytes, size_t columns,
			    enum top_cut cut, bool utf8)
{
	size_t used = top_columns_add(text, bytes, columns, cut, utf8);

	format_text_addf(text, "%*s", (int)(columns - used), "");
}

/* ---- Bars and sparklines ---------------------------------------------------------------- */

static uint64_t largest(const uint64_t *values, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

static void add_height(struct format_text *text, uint64_t value, uint64_t most, bool utf8)
{
	static const char *const blocks[] = { " ",
					      "\xe2\x96\x81",
					      "\xe2\x96\x82",
					      "\xe2\x96\x83",
					      "\xe2\x96\x84",
					      "\xe2\x96\x85",
					      "\xe2\x96\x86",
					      "\xe2\x96\x87",
					      "\xe2\x96\x88" };
	static const char letters[] = " .,:-=+*#";
	double part = most ? (double)value / (double)most : 0;
	size_t height = value == 0 ? 0 : part >= 1 ? HEIGHTS : 1 + (size_t)(part * (HEIGHTS - 1));

	if (utf8)
		format_text_add_string(text, blocks[height]);
	else
		format_text_add(text, &letters[height], 1);
}

void top_columns_add_spark(struct format_text *text, const uint64_t *values, size_t count,
			   uint64_t most, size_t columns, bool utf8)
{
	size_t shown = count < columns ? count : columns;

	values += count - shown;
	most = most ? most : largest(values, shown);
	format_text_addf(text, "%*s", (int)(columns - shown), "");
	for (size_t i = 0; i < shown; i++)
		add_height(text, values[i], most, utf8);
}

void top_columns_share(const uint64_t *parts, size_t count, size_t columns, size_t *ret_columns)
{
	double rest[TOP_PARTS_MAX], sum = 0;
	size_t left = columns, most;

	for (size_t i = 0; i < count; i++)
		sum += (double)parts[i];
	for (size_t i = 0; i < count; i++) {
		double exact = sum > 0 ? (double)parts[i] / sum * (double)columns : 0;

		ret_columns[i] = (size_t)exact < left ? (size_t)exact : left;
		rest[i] = exact - (double)ret_columns[i];
		left -= ret_columns[i];
	}
	for (; sum > 0 && left > 0; left--) {
		most = 0;
		for (size_t i = 1; i < count; i++)
			most = rest[i] > rest[most] ? i : most;
		ret_columns[most]++;
		rest[most]--;
	}
}

/* ---- Numbers ---------------------------------------------------------------------------- */

void top_columns_bytes(char *ret_text, size_t len, uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.5 && units[unit + 1]) {
		value /= 1024;
		unit++;
	}
	snprintf(ret_text, len, unit && value < 99.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void top_columns_time(char *ret_text, size_t len, uint64_t ns)
{
	uint64_t seconds = ns / 1000000000, minutes = seconds / 60, hours = minutes / 60;

	if (hours >= 24)
		snprintf(ret_text, len, "%" PRIu64 "d%02" PRIu64 "h", hours / 24, hours % 24);
	else if (hours)
		snprintf(ret_text, len, "%" PRIu64 "h%02" PRIu64 "m", hours, minutes % 60);
	else
		snprintf(ret_text, len, "%" PRIu64 ":%02" PRIu64, minutes, seconds % 60);
}
