/* SPDX-License-Identifier: MIT */
/* What comes from a table of options: values in their fields, and refusals. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/common/options.h"

struct arguments {
	char before; /* what is not to be written over */
	bool flag, other, word_flag;
	unsigned number, word;
	long signed_number;
	uint64_t large, bytes;
	double seconds, time_s;
	const char *text, *file, *folder;
	struct options_pids pids;
	struct options_names names;
	const char *taken;
	char behind;
};

static const struct options_word words[] = {
	{ "one", NULL, 1 }, { "uno", NULL, 1, .is_old = true }, { "two", "default", 2 }, { 0 }
};

static bool letter_at(size_t index, struct options_word *ret_word)
{
	static const char *const letters[] = { "a", "b", "c" };

	if (index >= 3)
		return false;
	*ret_word = (struct options_word){ letters[index], NULL, (unsigned)index };
	return true;
}

static bool take(struct arguments *arguments, const char *text)
{
	arguments->taken = text;
	return strcmp(text, "no") != 0;
}

static const struct options_entry entries[] = {
	{ "flag", 'f', .help = "flag", .excludes = "seconds other", OPTIONS_INTO(flag) },
	{ "other", .help = "other", OPTIONS_INTO(other) },
	{ "number", 'n', OPTIONS_NUMBER, "N", "number", .min = 1, .max = 9, OPTIONS_INTO(number),
	  .refused = "not a number" },
	{ "signed", 0, OPTIONS_NUMBER, "N", "number", .min = -5, OPTIONS_INTO(signed_number),
	  .refused = "not a number" },
	{ "large", 0, OPTIONS_NUMBER, "N", "number", OPTIONS_INTO(large),
	  .refused = "not a number" },
	{ "bytes", 0, OPTIONS_SIZE, "SIZE", "size", OPTIONS_INTO(bytes), .refused = "not a size" },
	{ "seconds", 0, OPTIONS_TIME, "S", "seconds", .min = 0.5, .max = 2, OPTIONS_INTO(seconds),
	  .refused = "not seconds" },
	{ "time", 0, OPTIONS_TIME, "T", "time", .min = 1, .max = 100, OPTIONS_INTO(time_s),
	  .refused = "not a time" },
	{ "word", 'w', OPTIONS_WORD, "W", "word", .words = words, OPTIONS_INTO(word),
	  .refused = "not a word" },
	{ "letter", 0, OPTIONS_WORD, "L", "letter", .word_at = letter_at, OPTIONS_INTO(word_flag),
	  .refused = "not a letter" },
	{ "text", 0, OPTIONS_TEXT, "T", "text", OPTIONS_INTO(text) },
	{ "file", 0, OPTIONS_FILE, "T", "file", OPTIONS_INTO(file) },
	{ "folder", 0, OPTIONS_FOLDER, "T", "folder", OPTIONS_INTO(folder) },
	{ "pid", 'p', OPTIONS_PIDS, "P", "pids", .is_repeated = true, OPTIONS_INTO(pids),
	  .refused = "not a pid" },
	{ "name", 0, OPTIONS_NAME, "P", "name", .is_repeated = true, OPTIONS_INTO(names),
	  .refused = "not a name" },
	{ "take", 't', OPTIONS_TEXT, "T", "take", .take = take, .refused = "not taken" },
	{ "silent", 0, OPTIONS_TEXT, "T", "take", .take = take },
	{ "old-number", 'o', .old_of = "number" },
	{ .letter = 'x', .old_of = "flag" },
};

static const char *const usage[] = { "X", NULL };

static struct options options = {
	.program = "test",
	.usage = usage,
	.about = "About.",
	.ending = "Ending.",
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
};

/* Read a command line of blanks and words. @return as options_parse(). */
static int parse(const char *line, struct arguments *ret_arguments, int *ret_first)
{
	static char copy[256];
	char *argv[16] = { 0 };
	int argc = 0;

	snprintf(copy, sizeof(copy), "test %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	*ret_arguments = (struct arguments){ .before = 'x', .behind = 'y' };
	optind = 0; /* begin anew, GNU */
	return options_parse(&options, argc, argv, ret_arguments, ret_first);
}

/* The same with what it says on standard error. */
static void expect_refused(const char *line, const char *message)
{
	struct arguments arguments;
	char text[512] = "";
	FILE *said = tmpfile();
	int first, saved = dup(STDERR_FILENO), ret;

	assert_non_null(said);
	dup2(fileno(said), STDERR_FILENO);
	ret = parse(line, &arguments, &first);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(said);
	text[fread(text, 1, sizeof(text) - 1, said)] = '\0';
	fclose(said);
	assert_int_equal(EXIT_USAGE, ret);
	assert_string_equal(message, text);
	free(arguments.pids.pids);
	free(arguments.names.patterns);
}

static void test_values(void **state)
{
	struct arguments got;
	int first;

	(void)state;
	assert_int_equal(-1, parse("-f -n 9 --signed=-5 --large 9223372036854775807 --bytes 2K "
				   "--word two",
				   &got, &first));
	assert_true(got.flag && !got.other && !got.word_flag);
	assert_int_equal(9, got.number);
	assert_int_equal(-5, got.signed_number);
	assert_true(got.large == INT64_MAX);
	assert_int_equal(2048, got.bytes);
	assert_int_equal(2, got.word);
	assert_true(got.before == 'x' && got.behind == 'y' && !got.text && !got.pids.pids);
	assert_int_equal(-1, parse("--other --seconds 0.5 --time 1m --letter c -wone --text a "
				   "--file b --folder c",
				   &got, &first));
	assert_true(got.other && got.word_flag && !got.flag);
	assert_float_equal(0.5, got.seconds, 1e-9);
	assert_float_equal(60, got.time_s, 1e-9);
	assert_int_equal(1, got.word);
	assert_string_equal("a", got.text);
	assert_string_equal("b", got.file);
	assert_string_equal("c", got.folder);
	assert_int_equal(-1, parse("--pid 1,2 -p 3 --name a --name b --take yes", &got, &first));
	assert_int_equal(3, got.pids.count);
	assert_int_equal(2, got.names.count);
	assert_string_equal("b", got.names.patterns[1]);
	assert_string_equal("yes", got.taken);
	free(got.pids.pids);
	free(got.names.patterns);
}

static void test_refusals(void **state)
{
	(void)state;
	expect_refused("--number 0", "test: not a number: 0: try test --help\n");
	expect_refused("-n10", "test: not a number: 10: try test --help\n");
	expect_refused("--signed -6", "test: not a number: -6: try test --help\n");
	expect_refused("--large -1", "test: not a number: -1: try test --help\n");
	expect_refused("--bytes 1x", "test: not a size: 1x: try test --help\n");
	expect_refused("--seconds 3", "test: not seconds: 3: try test --help\n");
	expect_refused("--time 2m", "test: not a time: 2m: try test --help\n");
	expect_refused("--word three", "test: not a word (one or two): three: try test --help\n");
	expect_refused("--letter d", "test: not a letter (a, b or c): d: try test --help\n");
	expect_refused("-p 1,,2", "test: not a pid: 1,,2: try test --help\n");
	expect_refused("--name (", "test: not a name: (: try test --help\n");
	expect_refused("-t no", "test: not taken: no: try test --help\n");
	expect_refused("--silent no", "");
	expect_refused("-n", "test: an argument is missing after -n: try test --help\n");
	expect_refused("--no-such", "test: unknown option --no-such: try test --help\n");
	expect_refused("--nmber=1", "test: unknown option --nmber=1: did you mean --number?\n");
	expect_refused("--old-nmber=1", "test: unknown option --old-nmber=1: try test --help\n");
	expect_refused("--f", "test: unknown option --f: did you mean --flag, --file or "
			      "--folder?\n");
	expect_refused("--word tow", "test: not a word (one or two): tow: did you mean two?\n");
	expect_refused("--flag=1", "test: the option takes no value: --flag=1: try test --help\n");
	/* Among others in one word, which is then not the one before getopt's position. */
	expect_refused("-fyf", "test: unknown option -y: try test --help\n");
	expect_refused("-f\xc3\xa9", "test: unknown option: try test --help\n");
}

/* Whoever of the two names the other, and in whichever order they are given. */
static void test_exclusions(void **state)
{
	struct arguments got;
	int first;

	(void)state;
	expect_refused("--other -f",
		       "test: --flag and --other cannot be used together: try test --help\n");
	expect_refused("-x --seconds 1",
		       "test: --flag and --seconds cannot be used together: try test --help\n");
	expect_refused("-f --seconds 1",
		       "test: --flag and --seconds cannot be used together: try test --help\n");
	assert_int_equal(-1, parse("--other --seconds 1", &got, &first));
	assert_int_equal(-1, parse("-f -f", &got, &first));
}

/* Former spellings do what the new ones do. */
static void test_old(void **state)
{
	struct arguments got;
	int first;

	(void)state;
	assert_int_equal(-1, parse("--old-number 3 -x --word uno", &got, &first));
	assert_true(got.flag);
	assert_int_equal(3, got.number);
	assert_int_equal(1, got.word);
	assert_int_equal(-1, parse("-o4", &got, &first));
	assert_int_equal(4, got.number);
	expect_refused("--old-number 0", "test: not a number: 0: try test --help\n");
}

/* Options behind operands that may also be a command. */
static void test_more(void **state)
{
	char test[] = "test", a[] = "a", n[] = "-n", one[] = "1", flag[] = "--flag", more[] = "b",
	     e[] = "-e";
	char *good[] = { test, a, n, one, flag, more, NULL };
	char *unknown[] = { test, a, e, one, NULL };
	char *open[] = { test, a, n, NULL };
	struct arguments got = { 0 };
	int first;

	(void)state;
	assert_true(options_fit(&options, 6, good, &first));
	assert_int_equal(4, first);
	assert_string_equal("a", good[4]);
	assert_string_equal("b", good[5]);
	assert_false(options_fit(&options, 4, unknown, &first));
	assert_false(options_fit(&options, 3, open, &first));
	assert_int_equal(-1, options_parse_more(&options, 6, good, &got, &first));
	assert_int_equal(4, first);
	assert_true(got.flag);
	assert_int_equal(1, got.number);
}

static void test_operands(void **state)
{
	struct arguments got;
	int first;

	(void)state;
	assert_int_equal(-1, parse("-f a -n 1", &got, &first));
	assert_int_equal(2, first);
	assert_int_equal(0, got.number);
	assert_int_equal(-1, parse("-f -- -n 1", &got, &first));
	assert_int_equal(3, first);
	options.operand = OPTIONS_FILES;
	assert_int_equal(-1, parse("a -f b -n 1", &got, &first));
	assert_int_equal(4, first);
	options.operand = OPTIONS_PROCESSES_OR_COMMAND;
	assert_int_equal(-1, parse("-f a -n 1", &got, &first));
	assert_int_equal(2, first);
	options.operand = OPTIONS_PROCESSES;
	assert_int_equal(-1, parse("a -f b -n 1", &got, &first));
	assert_int_equal(4, first);
	options.operand = OPTIONS_NO_OPERAND;
	assert_int_equal(1, got.number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_exclusions), cmocka_unit_test(test_old),
		cmocka_unit_test(test_more),	   cmocka_unit_test(test_operands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
