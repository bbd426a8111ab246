/* SPDX-License-Identifier: MIT */
/* Flame graphs: the page, and what is different between two profiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "chains.h"

static struct format_profile *read_text(const char *folded)
{
	FILE *file = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");
	struct format_profile *profile;

	assert_int_equal(0, format_profile_read(file, &profile, NULL));
	fclose(file);
	return profile;
}

/** @param base NULL: none. */
static char *print(const char *report, const struct format_profile *base,
		   const struct format_profile *profile, const char *title)
{
	const struct format_report_ops *ops = format_report_find(report);
	struct format_report_options options = { .title = title };
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(0, base ? ops->diff(base, profile, &options, out, NULL)
				 : ops->print(profile, &options, out, NULL));
	fclose(out);
	return text;
}

/** The same of folded chains. */
static char *print_text(const char *report, const char *base, const char *folded, const char *title)
{
	struct format_profile *before = base ? read_text(base) : NULL;
	struct format_profile *profile = read_text(folded);
	char *text = print(report, before, profile, title);

	format_profile_destroy(before);
	format_profile_destroy(profile);
	return text;
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

#define DATA_BEGIN "<script id=\"data\" type=\"application/json\">"

/** The profile in a page, as a program reads it: up to where a browser ends the element. */
static struct json_object *data_of(const char *page)
{
	const char *begin = strstr(page, DATA_BEGIN), *end;
	char *text;
	struct json_object *data;

	assert_non_null(begin);
	begin += strlen(DATA_BEGIN);
	end = strstr(begin, "</script");
	assert_non_null(end);
	text = strndup(begin, (size_t)(end - begin));
	data = json_tokener_parse(text);
	assert_non_null(data);
	free(text);
	return data;
}

static void expect_member(struct json_object *data, const char *name, const char *expected)
{
	struct json_object *value = json_object_object_get(data, name);

	assert_string_equal(expected, value ? json_object_to_json_string_ext(
						      value, JSON_C_TO_STRING_PLAIN |
								     JSON_C_TO_STRING_NOSLASHESCAPE)
					    : "none");
}

static void test_data(void **state)
{
	char *page =
		print_text("html", NULL, "main;work (@a.lua:3) 3\nmain;rest 4\nmain 2\n", NULL);
	struct json_object *data = data_of(page);

	(void)state;
	expect_member(data, "title", "\"Flame graph\"");
	expect_member(data, "unit", "\"samples\"");
	expect_member(data, "samples", "9");
	expect_member(data, "base", "none");
	expect_member(data, "functions",
		      "[[\"main\",0,0],[\"rest\",0,0],[\"work (@a.lua:3)\",1,0,\"@a.lua:3\"]]");
	/* Shared and further frames, these, and samples, of each chain. */
	expect_member(data, "chains", "[0,1,0,2,1,1,1,4,1,1,2,3]");
	json_object_put(data);
	free(page);
}

/** Compiled frames differ from others, though not by their names. */
static void test_compiled(void **state)
{
	struct chains chains;
	uint32_t alpha;
	struct json_object *data;
	struct format_profile *profile;
	char *page;

	(void)state;
	chains_open(&chains, false);
	alpha = chains_lua(&chains, 0x41000000, "@a.lua", 3, "alpha");
	for (int i = 0; i < 2; i++) {
		chains_push(&chains, alpha, 0x41000068, 5);
		chains.frames[0].trace = i ? 7 : 0;
		chains_sample(&chains, FORMAT_STATE_LFUNC);
	}
	chains_commit(&chains);
	rewind(chains.file);
	assert_int_equal(0, format_profile_read(chains.file, &profile, NULL));
	page = print("html", NULL, profile, NULL);
	data = data_of(page);
	expect_member(data, "functions",
		      "[[\"alpha (@a.lua:5)\",1,0,\"@a.lua:5\"],"
		      "[\"alpha (@a.lua:5)\",1,1,\"@a.lua:5\"]]");
	json_object_put(data);
	free(page);
	format_profile_destroy(profile);
	chains_close(&chains);
}

#define HOSTILE                \
	"</script><img src=x " \
	"onerror=alert(1)><!--<script>&\"\\'\xe2\x80\xa8\xe2\x80\xa9\xe2\x82\xac"

/** No name ends the element that it stands in, or begins one. */
static void test_hostile(void **state)
{
	char *plain = print_text("html", NULL, "main 1\n", "x");
	char *page = print_text("html", NULL, "main;" HOSTILE " 1\n\xff\xfe;b 1\n", HOSTILE);
	struct json_object *data = data_of(page), *row;

	(void)state;
	assert_int_equal(count(plain, "<"), count(page, "<"));
	assert_int_equal(count(plain, "</script"), count(page, "</script"));
	assert_null(strstr(page, "<img"));
	/* These end no line of the script's data. */
	assert_null(strstr(strstr(page, DATA_BEGIN), "\xe2\x80\xa8"));
	assert_null(strstr(strstr(page, DATA_BEGIN), "\xe2\x80\xa9"));
	assert_null(strstr(page, "\xff"));
	/* And all of it is there. */
	assert_string_equal(HOSTILE, json_object_get_string(json_object_object_get(data, "title")));
	row = json_object_array_get_idx(json_object_object_get(data, "functions"), 0);
	assert_string_equal(HOSTILE, json_object_get_string(json_object_array_get_idx(row, 0)));
	json_object_put(data);
	free(plain);
	free(page);
}

/** Nothing is fetched, and a browser would not. */
static void test_alone(void **state)
{
	char *page = print_text("html", NULL, "main 1\n", NULL);

	(void)state;
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_null(strstr(page, "{{"));
	assert_non_null(strstr(page, "content=\"default-src 'none'; script-src 'sha256-"));
	assert_int_equal(0, count(page, "unsafe"));
	assert_int_equal(0, count(page, " style="));
	free(page);
}

static void test_empty(void **state)
{
	struct failure why = { 0 };
	struct format_profile *profile = format_profile_create(&why);
	char *page = print("html", NULL, profile, NULL);
	struct json_object *data = data_of(page);

	(void)state;
	expect_member(data, "samples", "0");
	expect_member(data, "chains", "[]");
	json_object_put(data);
	free(page);
	page = print("svg", profile, profile, NULL);
	assert_int_equal(1, count(page, "<g class=\"f\""));
	free(page);
	format_profile_destroy(profile);
}

#define BASE "main;work;encode 10\nmain;rest 80\ngone;away 10\n"
#define NEW  "main;work;encode 60\nmain;rest 120\nmain;work;new 20\n"

static void test_html_diff(void **state)
{
	char *page = print_text("html", BASE, NEW, NULL);
	struct json_object *data = data_of(page);

	(void)state;
	expect_member(data, "title", "\"Differential flame graph\"");
	expect_member(data, "samples", "200");
	expect_member(data, "base", "100");
	expect_member(data, "functions",
		      "[[\"away\",0,0],[\"encode\",0,0],[\"gone\",0,0],[\"main\",0,0],"
		      "[\"new\",0,0],[\"rest\",0,0],[\"work\",0,0]]");
	/* Now, and before. */
	expect_member(data, "chains", "[0,2,2,0,0,10,0,2,3,5,120,80,1,2,6,1,60,10,2,1,4,20,0]");
	json_object_put(data);
	free(page);
}

static void test_svg_diff(void **state)
{
	char *text = print_text("svg", BASE, NEW, "a & b"), *box;

	(void)state;
	assert_non_null(strstr(text, "a &amp; b"));
	assert_non_null(strstr(text,
			       ">200 samples, 3 call chains, 5 functions; 100 samples before, "
			       "10.00% in call chains that are gone<"));
	/* The largest change is the whole of its colour, others have less. */
	box = strstr(text, "<title>work\nnative, 80 samples, 40.00%, before 10 samples, 10.00%, "
			   "change +30.00 points</title>");
	assert_non_null(box);
	assert_memory_equal("<rect fill=\"#f2604c\"", strchr(box, '/') + strlen("/title>"), 20);
	box = strstr(text, "<title>rest\nnative, 120 samples, 60.00%, before 80 samples, 80.00%, "
			   "change -20.00 points</title>");
	assert_non_null(box);
	assert_memory_equal("<rect fill=\"#", strchr(box, '/') + strlen("/title>"), 13);
	assert_non_null(strstr(text, "20 samples, 10.00%, before 0 samples, 0.00%, change +10.00"));
	/* What is gone has no width. */
	assert_null(strstr(text, "<title>gone"));
	free(text);
	/* The same twice has no colour. */
	text = print_text("svg", NEW, NEW, NULL);
	assert_int_equal(6, count(text, "<rect fill=\"#e8e8ec\""));
	free(text);
}

static void test_memory_profile(void **state)
{
	static const char stream[] = "ljs\x03\0\0\0\x80ljm\x03\0\0\0\x05\x10\x20\x80";
	FILE *file = fmemopen((void *)(uintptr_t)stream, sizeof(stream) - 1, "r");
	struct format_report_options options = { 0 };
	struct format_profile *profile;
	struct failure why = { 0 };

	(void)state;
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	assert_int_equal(-1, format_report_find("html")->print(profile, &options, stderr, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	assert_int_equal(
		-1, format_report_find("html")->diff(profile, profile, &options, stderr, &why));
	format_profile_destroy(profile);
	fclose(file);
}

/* More frames than a viewer can show: wider ones are left out, and no form grows without bound. */
static void test_many_frames(void **state)
{
	enum { CHAINS = 800, DEPTH = 800 };
	char *folded = NULL, *text;
	size_t len, shown = 0;
	FILE *file = open_memstream(&folded, &len);

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < CHAINS; i++) {
		fprintf(file, "main;f%d", i);
		for (int k = 0; k < DEPTH; k++)
			fputs(";g", file);
		fputs(" 1\n", file);
	}
	fprintf(file, "main;wide %d\n", CHAINS);
	fclose(file);
	text = print_text("svg", NULL, folded, NULL);
	for (const char *at = text; (at = strstr(at, "<g class=\"f\"")); at++)
		shown++;
	assert_int_equal(3, shown); /* The root box, main and wide. */
	assert_non_null(strstr(text, "; 640800 frames are too narrow to be drawn"));
	assert_non_null(strstr(text, ">wide</text>"));
	free(text);
	free(folded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_frames),    cmocka_unit_test(test_data),
		cmocka_unit_test(test_compiled),       cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_alone),	       cmocka_unit_test(test_empty),
		cmocka_unit_test(test_html_diff),      cmocka_unit_test(test_svg_diff),
		cmocka_unit_test(test_memory_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
