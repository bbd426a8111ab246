/* SPDX-License-Identifier: MIT */
/* Text of a fixed width: hostile names, bars and sparklines. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/input/top_prompt.h"
#include "cli/top/terminal/top_columns.h"

#define DOTS  "\xe2\x80\xa6"
#define KANJI "\xe6\xbc\xa2" /* two columns */
#define ACUTE "\xcc\x81"     /* belongs to the letter before it */

static struct format_text text;

static const char *added(void)
{
	struct failure why;
	const char *string;

	assert_int_equal(0, format_text_take(&text, &string, &why));
	return string;
}

static void assert_cut(const char *wanted, const char *from, size_t columns, enum top_cut cut,
		       bool utf8)
{
	format_text_clear(&text);
	top_columns_add(&text, from, columns, cut, utf8);
	assert_string_equal(wanted, added());
}

static void test_cut(void **state)
{
	(void)state;
	assert_cut("burn", "burn", 4, TOP_CUT_END, true);
	assert_cut("bur" DOTS, "burning", 4, TOP_CUT_END, true);
	assert_cut("bur~", "burning", 4, TOP_CUT_END, false);
	assert_cut(DOTS "lua:12", "@scripts/demo.lua:12", 7, TOP_CUT_BEGIN, true);
	assert_cut("~lua:12", "@scripts/demo.lua:12", 7, TOP_CUT_BEGIN, false);
	assert_cut("", "burn", 0, TOP_CUT_END, true);
	assert_cut(DOTS, "burn", 1, TOP_CUT_END, true);
	assert_cut(DOTS, "burn", 1, TOP_CUT_BEGIN, true);
	assert_cut("", "", 5, TOP_CUT_END, true);
}

/* A character of two columns is there as a whole or not at all. */
static void test_wide(void **state)
{
	(void)state;
	assert_int_equal(6, top_columns_width(KANJI KANJI KANJI, true));
	assert_int_equal(3, top_columns_width(KANJI KANJI KANJI, false));
	assert_cut(KANJI KANJI, KANJI KANJI, 4, TOP_CUT_END, true);
	assert_cut(KANJI DOTS, KANJI KANJI KANJI, 4, TOP_CUT_END, true);
	assert_cut(KANJI DOTS, KANJI KANJI KANJI, 3, TOP_CUT_END, true);
	assert_cut(DOTS KANJI, KANJI KANJI KANJI, 4, TOP_CUT_BEGIN, true);
	assert_cut("???", KANJI KANJI KANJI, 4, TOP_CUT_END, false);
	format_text_clear(&text);
	top_columns_add_padded(&text, KANJI KANJI KANJI, 4, TOP_CUT_END, true);
	assert_string_equal(KANJI DOTS " ", added());
}

static void test_marks(void **state)
{
	(void)state;
	assert_int_equal(1, top_columns_width("e" ACUTE, true));
	assert_cut("e" ACUTE "x", "e" ACUTE "x", 2, TOP_CUT_END, true);
	/* Nothing to stand on, and too many. */
	assert_cut("x", ACUTE "x", 2, TOP_CUT_END, true);
	assert_cut("e" ACUTE ACUTE "x", "e" ACUTE ACUTE ACUTE ACUTE "x", 2, TOP_CUT_END, true);
}

/* What a terminal obeys, and what is no character. */
static void test_hostile(void **state)
{
	char every[256 + 1];

	(void)state;
	assert_cut(" [31mred ", "\33[31mred\7", 20, TOP_CUT_END, true);
	assert_cut("a b", "a\nb", 20, TOP_CUT_END, true);
	assert_cut("a b",
		   "a\xc2\x9b"
		   "b",
		   20, TOP_CUT_END, true); /* CSI of 8 bits */
	assert_cut("a b",
		   "a\xe2\x80\xae"
		   "b",
		   20, TOP_CUT_END, true); /* right to left */
	assert_cut("a?b",
		   "a\xff"
		   "b",
		   20, TOP_CUT_END, true);
	assert_cut("a?", "a\xe6", 20, TOP_CUT_END, true);	  /* half of a character */
	assert_cut("???", "\xed\xa0\x80", 20, TOP_CUT_END, true); /* half of a surrogate pair */
	for (int i = 0; i < 256; i++)
		every[i] = (char)(i + 1);
	every[255] = every[256] = '\0';
	for (int utf8 = 0; utf8 < 2; utf8++)
		for (size_t columns = 0; columns < 300; columns++) {
			format_text_clear(&text);
			top_columns_add_padded(&text, every, columns, columns % 2, utf8);
			assert_int_equal(columns, top_columns_width(added(), utf8));
			for (const char *c = added(); *c; c++)
				assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
		}
}

static void assert_spark(const char *wanted, const uint64_t *values, size_t count, uint64_t most,
			 size_t columns, bool utf8)
{
	format_text_clear(&text);
	top_columns_add_spark(&text, values, count, most, columns, utf8);
	assert_string_equal(wanted, added());
}

static void test_spark(void **state)
{
	static const uint64_t values[] = { 0, 1, 50, 100, 200, UINT64_MAX };

	(void)state;
	assert_spark(" \xe2\x96\x81\xe2\x96\x84\xe2\x96\x88", values, 4, 0, 4, true);
	assert_spark(" .-#", values, 4, 100, 4, false);
	/* The newest at the right, and the oldest left out. */
	assert_spark("   .", values, 2, 100, 4, false);
	assert_spark("-#", values, 4, 0, 2, false);
	/* More than the most is the most. */
	assert_spark("##", values + 3, 2, 100, 2, false);
	assert_spark(".#", values + 4, 2, 0, 2, false);
	assert_spark("    ", values, 0, 0, 4, true);
	assert_spark(" ", values, 1, 0, 1, true);
	assert_spark("", values, 4, 0, 0, true);
}

static void assert_shares(size_t columns, const uint64_t *parts, size_t count, const size_t *wanted)
{
	size_t got[TOP_PARTS_MAX];

	top_columns_share(parts, count, columns, got);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(wanted[i], got[i]);
}

static void test_share(void **state)
{
	(void)state;
	assert_shares(10, (uint64_t[]){ 75, 25 }, 2, (size_t[]){ 8, 2 });
	assert_shares(10, (uint64_t[]){ 1, 1, 1 }, 3, (size_t[]){ 4, 3, 3 });
	assert_shares(10, (uint64_t[]){ 0, 0, 7 }, 3, (size_t[]){ 0, 0, 10 });
	assert_shares(10, (uint64_t[]){ 0, 0, 0 }, 3, (size_t[]){ 0, 0, 0 });
	assert_shares(0, (uint64_t[]){ 3, 4 }, 2, (size_t[]){ 0, 0 });
	assert_shares(3, (uint64_t[]){ UINT64_MAX, UINT64_MAX, UINT64_MAX }, 3,
		      (size_t[]){ 1, 1, 1 });
}

static void test_numbers(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *shown;
	} sizes[] = { { 0, "0B" },	     { 999, "999B" },	     { 1000, "1.0K" },
		      { 1536, "1.5K" },	     { 102400, "100K" },     { 1048576, "1.0M" },
		      { 12884902, "12.3M" }, { UINT64_MAX, "16.0E" } };
	static const struct {
		uint64_t seconds;
		const char *shown;
	} times[] = { { 0, "0:00" },	     { 59, "0:59" },	  { 754, "12:34" },
		      { 3600, "1h00m" },     { 86399, "23h59m" }, { 86400, "1d00h" },
		      { 8650000, "100d02h" } };
	char shown[8];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		top_columns_bytes(shown, sizeof(shown), sizes[i].bytes);
		assert_string_equal(sizes[i].shown, shown);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		top_columns_time(shown, sizeof(shown), times[i].seconds * 1000000000);
		assert_string_equal(times[i].shown, shown);
	}
}

static void type(char *typed, size_t size, const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(TOP_TYPED_MORE, top_prompt_key(typed, size, (unsigned char)*keys));
}

static void test_prompt(void **state)
{
	char typed[12] = "";

	(void)state;
	type(typed, sizeof(typed), "ab" KANJI);
	assert_string_equal("ab" KANJI, typed);
	type(typed, sizeof(typed), "\x7f"); /* Backspace takes all bytes of it */
	assert_string_equal("ab", typed);
	type(typed, sizeof(typed), " cd\x17"); /* Ctrl-W */
	assert_string_equal("ab ", typed);
	type(typed, sizeof(typed), "0123456789abc"); /* no more than there is room for */
	assert_string_equal("ab 01234567", typed);
	assert_int_equal(TOP_TYPED_DONE, top_prompt_key(typed, sizeof(typed), '\r'));
	type(typed, sizeof(typed), "\x15"); /* Ctrl-U */
	assert_string_equal("", typed);
	assert_int_equal(TOP_TYPED_CANCEL, top_prompt_key(typed, sizeof(typed), 0x7f));
	assert_int_equal(TOP_TYPED_CANCEL, top_prompt_key(typed, sizeof(typed), 27));
}

static int release(void **state)
{
	(void)state;
	format_text_deinit(&text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),	cmocka_unit_test(test_wide),
		cmocka_unit_test(test_marks),	cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_spark),	cmocka_unit_test(test_share),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_prompt),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		puts("skipped: there is no locale C.UTF-8");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, release);
}
