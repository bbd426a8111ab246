/* SPDX-License-Identifier: MIT */
/* Reports of small profiles, of hostile ones, and of their texts in XML and Markdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "format/stream/tarantool_output.h"
#include "format/text.h"
#include "format/text/markdown.h"
#include "format/text/xml.h"

#define TABLE	"ljs\x03\0\0\0"
#define MEMPROF TABLE "\x80ljm\x03\0\0\0"

/** A small program: main calls alpha, which recurses and calls a built-in function; one chain is in
 * the garbage collector, one has a name that would break formats. */
static void fill(struct chains *chains)
{
	uint32_t main = chains_native(chains, 0x401000, "main");
	uint32_t odd = chains_native(chains, 0x402000, "a;<b>&\"c\"");
	uint32_t alpha = chains_lua(chains, 0x41000000, "@a.lua", 3, "alpha");
	uint32_t chunk = chains_lua(chains, 0x41001000, "@a.lua", 0, NULL);
	uint32_t gsub = chains_fast(chains, "string.gsub");
	uint32_t gc = chains_pseudo(chains, "[gc]");

	for (uint32_t i = 0; i < 4; i++) {
		chains_push(chains, main, 0x401010, 0);
		chains_push(chains, chunk, 0x41001068, 20);
		chains_push(chains, alpha, 0x41000068, 5);
		chains_push(chains, alpha, 0x4100006c, 6 + i % 2);
		if (i == 3)
			chains_push(chains, gsub, 0, 0);
		chains_sample(chains, FORMAT_STATE_LFUNC);
	}
	chains_push(chains, main, 0x401010, 0);
	chains_push(chains, gc, 0, 0);
	chains_sample(chains, FORMAT_STATE_GC);
	chains_push(chains, odd, 0x402010, 0);
	chains_sample(chains, FORMAT_STATE_INTERP);
}

static char *print_with(struct chains *chains, const char *report,
			const struct format_report_options *options)
{
	struct format_profile *profile;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	chains_commit(chains);
	rewind(chains->file);
	assert_int_equal(0, format_profile_read(chains->file, &profile, NULL));
	assert_int_equal(0, format_report_find(report)->print(profile, options, out, NULL));
	fclose(out);
	format_profile_destroy(profile);
	return text;
}

static char *print(struct chains *chains, const char *report, enum format_lines lines)
{
	const struct format_report_options options = { .title = "a <title> & more",
						       .lines = lines };

	return print_with(chains, report, &options);
}

static void expect_with(struct chains *chains, const char *report,
			const struct format_report_options *options, const char *expected)
{
	char *text = print_with(chains, report, options);

	assert_string_equal(expected, text);
	free(text);
}

static void expect(struct chains *chains, const char *report, enum format_lines lines,
		   const char *expected)
{
	char *text = print(chains, report, lines);

	assert_string_equal(expected, text);
	free(text);
}

static void test_folded(void **state)
{
	expect(*state, "folded", FORMAT_LINES_DEFAULT,
	       "a,<b>&\"c\" 1\n"
	       "main;@a.lua:20;alpha (@a.lua:5);alpha (@a.lua:6) 2\n"
	       "main;@a.lua:20;alpha (@a.lua:5);alpha (@a.lua:7) 1\n"
	       "main;@a.lua:20;alpha (@a.lua:5);alpha (@a.lua:7);string.gsub 1\n"
	       "main;[gc] 1\n");
	expect(*state, "folded", FORMAT_LINES_FUNCTION,
	       "a,<b>&\"c\" 1\n"
	       "main;@a.lua:0;alpha (@a.lua:3);alpha (@a.lua:3) 3\n"
	       "main;@a.lua:0;alpha (@a.lua:3);alpha (@a.lua:3);string.gsub 1\n"
	       "main;[gc] 1\n");
}

/** Recursion counts once per sample. */
static void test_top(void **state)
{
	expect(*state, "top", FORMAT_LINES_DEFAULT,
	       "6 samples, 6 functions\n\n"
	       "     SELF      %     TOTAL      %  KIND      FUNCTION     LOCATION\n"
	       "        3  50.00         4  66.67  Lua       alpha        a.lua:3\n"
	       "        1  16.67         1  16.67  activity  [gc]\n"
	       "        1  16.67         1  16.67  native    a;<b>&\"c\"\n"
	       "        1  16.67         1  16.67  built-in  string.gsub\n"
	       "        0   0.00         5  83.33  native    main\n"
	       "        0   0.00         4  66.67  Lua       <a.lua>      a.lua\n");
}

/** On a terminal the table has its width, and tells what it leaves out. */
static void test_top_on_a_terminal(void **state)
{
	struct format_report_options options = { .top = 2, .width = 80 };

	expect_with(*state, "top", &options,
		    "6 samples, 6 functions\n\n"
		    " SELF% TOTAL%  KIND      FUNCTION  LOCATION\n"
		    " 50.00  66.67  Lua       alpha     a.lua:3\n"
		    " 16.67  16.67  activity  [gc]\n"
		    "\n4 more functions; --top 0 shows all\n");
	options = (struct format_report_options){ .width = 45 };
	chains_push(*state,
		    chains_lua(*state, 0x41002000, "@/long/\xc3\xa4\xc3\xb6\xc3\xbc/b.lua", 30,
			       "a_long_n\xc3\xa4me_of_a_function"),
		    0x41002068, 31);
	chains_sample(*state, FORMAT_STATE_INTERP);
	expect_with(*state, "top", &options,
		    "7 samples, 7 functions\n\n"
		    " SELF% TOTAL%  KIND      FUNCTION      LOCATION\n"
		    " 42.86  57.14  Lua       alpha         a.lua:3\n"
		    " 14.29  14.29  activity  [gc]\n"
		    " 14.29  14.29  native    a;<b>&\"c\"\n"
		    " 14.29  14.29  Lua       a_long_n...   .../b.lua:30\n"
		    " 14.29  14.29  built-in  string.gsub\n"
		    "  0.00  71.43  native    main\n"
		    "  0.00  57.14  Lua       <a.lua>       a.lua\n");
}

static void test_counters(void **state)
{
	expect(*state, "counters", FORMAT_LINES_DEFAULT,
	       "samples 6\nINTERP 1\nLFUNC 3\nFFUNC 1\nCFUNC 0\nGC 1\nEXIT 0\nRECORD 0\nOPT 0\n"
	       "ASM 0\nTRACE 0\n");
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static void test_svg(void **state)
{
	char *text = print(*state, "svg", FORMAT_LINES_FUNCTION);

	assert_non_null(strstr(text, "a &lt;title&gt; &amp; more</text>"));
	assert_non_null(strstr(text, "<title>a;&lt;b&gt;&amp;&quot;c&quot;\nnative, 1 samples, "
				     "16.67%</title>"));
	assert_non_null(strstr(text, "<title>alpha (@a.lua:3)\nLua, 4 samples, 66.67%</title>"));
	/* The root box, the odd one, main, [gc], the chunk, twice alpha, string.gsub. */
	assert_int_equal(8, count(text, "<g class=\"f\""));
	/* The picture needs nothing from elsewhere: the only addresses are namespaces. */
	assert_int_equal(count(text, "http"), count(text, "xmlns=\"http"));
	free(text);
}

/** Frames too narrow to be seen are left out and counted. */
static void test_svg_narrow(void **state)
{
	struct chains *chains = *state;
	uint32_t main = chains_native(chains, 0x500000, "wide");
	uint32_t leaf = chains_native(chains, 0x501000, "narrow_leaf");
	char *text;

	chains_push(chains, main, 0x500000, 0);
	chains_sample_as(chains, FORMAT_STATE_INTERP, 0, 20000);
	chains_push(chains, main, 0x500000, 0);
	chains_push(chains, leaf, 0x501000, 0);
	chains_sample(chains, FORMAT_STATE_INTERP);
	text = print(chains, "svg", FORMAT_LINES_DEFAULT);
	assert_null(strstr(text, "narrow_leaf"));
	assert_non_null(strstr(text, "frames are too narrow to be drawn"));
	free(text);
}

static void test_empty_profile(void **state)
{
	struct chains chains;
	char *text;

	(void)state;
	chains_open(&chains, false);
	expect(&chains, "folded", FORMAT_LINES_DEFAULT, "");
	text = print(&chains, "svg", FORMAT_LINES_DEFAULT);
	assert_int_equal(1, count(text, "<g class=\"f\""));
	free(text);
	text = print(&chains, "top", FORMAT_LINES_DEFAULT);
	assert_non_null(strstr(text, "0 samples, 0 functions"));
	free(text);
	chains_close(&chains);
}

#define CSI_BYTE      "\x9b"
#define CSI	      "\xc2\x9b"
#define OVERRIDE      "\xe2\x80\xae"
#define HOSTILE(part) part CSI "31m" part CSI_BYTE "32m" part OVERRIDE part "\033[33m\xc3\xbc"

/* Whatever a profile's names are, they do nothing to a terminal. */
static void assert_harmless(const char *text)
{
	assert_null(strstr(text, CSI_BYTE));
	assert_null(strstr(text, OVERRIDE));
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "\xc3\xbc"));
}

static void test_hostile_names(void **state)
{
	static const char *const reports[] = { "top", "folded" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct chains chains;
		uint32_t functions[6];
		char *text;

		chains_open(&chains, false);
		functions[0] = chains_process(&chains, 7, HOSTILE("p") " [7]");
		functions[1] = chains_native(&chains, 0x401000, HOSTILE("n"));
		functions[2] = chains_lua(&chains, 0x41000000, HOSTILE("@c"), 3, HOSTILE("l"));
		functions[3] = chains_lua(&chains, 0x42000000, HOSTILE("@d"), 3, NULL);
		functions[4] = chains_cfunc(&chains, 0x403000, HOSTILE("c"));
		functions[5] = chains_trace(&chains, 9, HOSTILE("@t"), 4);
		chains_push(&chains, functions[0], 7, 0);
		chains_push(&chains, functions[1], 0x401000, 0);
		chains_push(&chains, functions[2], 0x41000068, 5);
		chains_push(&chains, functions[3], 0x42000068, 6);
		chains_push(&chains, functions[4], 0x403000, 0);
		chains_sample(&chains, FORMAT_STATE_CFUNC);
		chains_push(&chains, functions[1], 0x401000, 0);
		chains_push(&chains, functions[5], 0, 0);
		chains_sample_as(&chains, FORMAT_STATE_TRACE, 9, 1);
		text = print(&chains, reports[i], FORMAT_LINES_DEFAULT);
		assert_harmless(text);
		assert_non_null(strstr(text, "n  31mn 32mn   n [33m\xc3\xbc"));
		assert_non_null(strstr(text, "l  31ml 32ml   l [33m\xc3\xbc"));
		free(text);
		chains_close(&chains);
	}
}

/* Long names end with a whole character. */
static void test_cut_names(void **state)
{
	static const char *const reports[] = { "top", "folded" };
	char name[2001] = "", *text;

	(void)state;
	for (size_t shift = 0; shift < 2; shift++) {
		memset(name, 'x', shift);
		for (size_t i = shift; i + 2 < sizeof(name); i += 2)
			strcpy(name + i, "\xc3\xa9");
		for (size_t i = 0; i < 2; i++) {
			struct chains chains;
			uint32_t code;

			chains_open(&chains, false);
			chains_push(&chains, chains_lua(&chains, 0x41000000, name, 3, name),
				    0x41000068, 5);
			chains_sample(&chains, FORMAT_STATE_LFUNC);
			text = print(&chains, reports[i], FORMAT_LINES_DEFAULT);
			for (size_t at = 0, size; text[at]; at += size) {
				size = format_text_character(text + at, strlen(text + at), &code);
				assert_true(size > 0);
			}
			free(text);
			chains_close(&chains);
		}
	}
}

static void test_hostile_allocator(void **state)
{
	static const char stream[] =
		TABLE "\x01\x40\x03\x9bg\033\x80ljm\x03\0\0\0\x0d\x41\x12\x22\x80";
	FILE *file = fmemopen((void *)(uintptr_t)stream, sizeof(stream) - 1, "r");
	char *text = chains_report_of(file, "top");

	(void)state;
	assert_non_null(strstr(text, "\n g :0x40: 1 events\t"));
	free(text);
	fclose(file);
}

/** Bytes of a file that grows in memory. */
static void put_number(FILE *file, unsigned number)
{
	for (; number >= 0x80; number >>= 7)
		putc((int)(number & 0x7f) | 0x80, file);
	putc((int)number, file);
}

/** A stream whose merge repeats the Lua list again and again is refused, with its address. */
static void test_hostile_repetition(void **state)
{
	FILE *file = tmpfile();
	struct format_profile *profile;
	struct failure why = { 0 };

	(void)state;
	fwrite(TABLE "\x01\x01\x08lua_call\x80ljp\x02\0\0\0\x01", 1, 27, file);
	for (unsigned i = 0; i < 1000; i++) {
		putc(2, file);
		put_number(file, 5);
	}
	for (unsigned i = 0; i < 1000; i++) {
		putc(3, file);
		put_number(file, 20);
	}
	putc(0x80, file);
	for (unsigned i = 0; i < 1000; i++)
		put_number(file, 1 + i);
	fwrite("\0\x80", 1, 2, file);
	rewind(file);
	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(26, why.address);
	fclose(file);
}

/** Line -1 of a built-in function, as Tarantool's parser prints its double. */
static void test_tarantool_line(void **state)
{
	static const char stream[] =
		TABLE "\x00\x05\x07"
		      "foreach\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x09\x09lua_pcall\x80"
		      "ljp\x02\0\0\0\x01\x01\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80"
		      "\x09\x00\x00\x03\x00\x80";
	FILE *file = fmemopen((void *)(uintptr_t)stream, sizeof(stream) - 1, "r");
	struct format_text text = { 0 };

	(void)state;
	assert_int_equal(0, tarantool_print_sysprof(file, &text, NULL));
	assert_string_equal("CFUNC 0x3;\t1\n"
			    "lua_pcall:0x9;foreach:-9223372036854775808;\t1\n",
			    text.bytes);
	format_text_deinit(&text);
	fclose(file);
}

static void expect_printed(void (*print_text)(FILE *, const char *, size_t), const char *text,
			   size_t characters, const char *expected)
{
	char *printed;
	size_t len;
	FILE *out = open_memstream(&printed, &len);

	print_text(out, text, characters);
	fclose(out);
	assert_string_equal(expected, printed);
	free(printed);
}

static void expect_xml(const char *text, size_t characters, const char *expected)
{
	expect_printed(xml_print, text, characters, expected);
}

static void test_xml(void **state)
{
	(void)state;
	expect_xml("a<b>&\"'", 99, "a&lt;b&gt;&amp;&quot;'");
	expect_xml("gr\xc3\xbc\xc3\x9f", 5, "gr\xc3\xbc\xc3\x9f");
	expect_xml("gr\xc3\xbc\xc3\x9f", 3, "gr\xe2\x80\xa6");
	expect_xml("a\xff\xc3\x01", 99, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	/* Overlong, surrogate, not a character, beyond Unicode. */
	expect_xml("\xc0\x80", 99, "\xef\xbf\xbd\xef\xbf\xbd");
	expect_xml("\xed\xa0\x80", 1, "\xe2\x80\xa6");
	expect_xml("\xef\xbf\xbf.", 99, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
	expect_xml("\xf4\x90\x80\x80", 99, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_xml("\xf0\x9f\x98\x80", 1, "\xf0\x9f\x98\x80");
}

static void expect_markdown(const char *text, size_t characters, const char *expected)
{
	expect_printed(markdown_print_code, text, characters, expected);
}

static void test_markdown_code(void **state)
{
	(void)state;
	expect_markdown("", 99, "");
	expect_markdown("burn (@burn.lua:12)", 99, "`burn (@burn.lua:12)`");
	expect_markdown("a<b>&\"\\*_", 99, "`a<b>&\"\\*_`");
	expect_markdown("|", 99, "&#124;");
	expect_markdown("a\\|b||c", 99, "`a\\`&#124;`b`&#124;&#124;`c`");
	expect_markdown("a`b", 99, "``a`b``");
	expect_markdown("`", 99, "`` ` ``");
	expect_markdown("a``|`", 99, "``` a`` ```&#124;`` ` ``");
	expect_markdown("a\nb\r\x7f", 99, "`a b  `");
	expect_markdown("\xff\xc3\xbc", 99, "`\xef\xbf\xbd\xc3\xbc`");
	expect_markdown("gr\xc3\xbc\xc3\x9f", 4, "`gr\xc3\xbc\xc3\x9f`");
	expect_markdown("gr\xc3\xbc\xc3\x9f", 3, "`gr`\xe2\x80\xa6");
	expect_markdown(" a ", 99, "`  a  `");
	expect_markdown(" |\na", 99, "` `&#124;` a`");
	expect_markdown("ab", 1, "\xe2\x80\xa6");
}

static void test_markdown(void **state)
{
	expect(*state, "markdown", FORMAT_LINES_DEFAULT,
	       "### `a <title> & more`\n\n**6** samples.\n\n"
	       "States of the VM: INTERP 16.7 %, LFUNC 50.0 %, FFUNC 16.7 %, GC 16.7 %.\n\n"
	       "#### By own samples\n\n"
	       "| Self | Self % | Total | Total % | Kind | Function |\n"
	       "|---:|---:|---:|---:|---|---|\n"
	       "| 3 | 50.00 | 4 | 66.67 | Lua | `alpha (@a.lua:3)` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | activity | `[gc]` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | native | `a;<b>&\"c\"` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | built-in | `string.gsub` |\n"
	       "| 0 | 0.00 | 5 | 83.33 | native | `main` |\n"
	       "| 0 | 0.00 | 4 | 66.67 | Lua | `@a.lua:0` |\n\n"
	       "#### Including callees\n\n"
	       "| Self | Self % | Total | Total % | Kind | Function |\n"
	       "|---:|---:|---:|---:|---|---|\n"
	       "| 0 | 0.00 | 5 | 83.33 | native | `main` |\n"
	       "| 3 | 50.00 | 4 | 66.67 | Lua | `alpha (@a.lua:3)` |\n"
	       "| 0 | 0.00 | 4 | 66.67 | Lua | `@a.lua:0` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | activity | `[gc]` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | native | `a;<b>&\"c\"` |\n"
	       "| 1 | 16.67 | 1 | 16.67 | built-in | `string.gsub` |\n");
}

static int set_up(void **state)
{
	struct chains *chains = calloc(1, sizeof(*chains));

	chains_open(chains, false);
	fill(chains);
	*state = chains;
	return 0;
}

static int tear_down(void **state)
{
	chains_close(*state);
	free(*state);
	return 0;
}

#define REPORT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPORT(test_folded),
		REPORT(test_top),
		REPORT(test_top_on_a_terminal),
		REPORT(test_counters),
		REPORT(test_markdown),
		REPORT(test_svg),
		REPORT(test_svg_narrow),
		cmocka_unit_test(test_empty_profile),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_cut_names),
		cmocka_unit_test(test_hostile_allocator),
		cmocka_unit_test(test_hostile_repetition),
		cmocka_unit_test(test_tarantool_line),
		cmocka_unit_test(test_xml),
		cmocka_unit_test(test_markdown_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
