/* SPDX-License-Identifier: MIT */
/* What does the command line of ljreport say? */
#include "cli/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/common/options.h"
#include "cli/common/stdio_setup.h"
#include "format/text.h"

enum {
	ROWS_MAX = 10 * 1000 * 1000,
	ROWS_NOT_GIVEN,
};

#define PROGRAM "ljreport"

/** Whether one output would replace another. */
static bool is_same(const char *one, const char *other)
{
	return one && other && strcmp(one, other) == 0;
}

/* ---- Rules ------------------------------------------------------------------------------ */

/* @return false after a message. */
static bool make_budget(struct arguments *arguments)
{
	if (!arguments->budget)
		arguments->budget = format_budget_create();
	if (!arguments->budget)
		options_refuse(PROGRAM, "out of memory", NULL);
	return arguments->budget;
}

static bool take_rule(struct arguments *arguments, const char *text)
{
	struct failure why = { 0 };
	char reason[256];

	if (!make_budget(arguments))
		return false;
	if (format_budget_add(arguments->budget, text, &why) == 0)
		return true;
	failure_describe(&why, reason, sizeof(reason));
	options_refuse(PROGRAM,
		       why.kind == FAILURE_INVALID ? "--fail-on takes a rule such as 'self>5%', "
						     "'func:NAME>10%' or '+2%', not"
						   : reason,
		       why.kind == FAILURE_INVALID ? text : NULL);
	return false;
}

static bool take_rules(struct arguments *arguments, const char *path)
{
	FILE *file = fopen(path, "re");
	struct failure why = { 0 };
	char reason[256];
	int result = -1;

	if (!file) {
		fprintf(stderr, "ljreport: %s: %s (give --budget a file of rules)\n", path,
			strerror(errno));
		return false;
	}
	if (make_budget(arguments)) {
		size_t before, count;

		format_budget_verdicts(arguments->budget, &before);
		result = format_budget_read(arguments->budget, file, &why);
		failure_describe(&why, reason, sizeof(reason));
		if (result && why.kind == FAILURE_INVALID)
			fprintf(stderr, "ljreport: %s: %s in line %llu\n", path, why.step,
				(unsigned long long)why.address);
		else if (result)
			fprintf(stderr, "ljreport: %s: %s\n", path, reason);
		format_budget_verdicts(arguments->budget, &count);
		if (result == 0 && count == before) {
			fprintf(stderr, "ljreport: %s: no rule in it\n", path);
			result = -1;
		}
	}
	fclose(file);
	return result == 0;
}

/* ---- Views ------------------------------------------------------------------------------ */

/** Compile an extended regular expression. @return false after a message. */
static bool take_expression(struct arguments *arguments, unsigned index, const char *text,
			    const regex_t **ret_expression)
{
	int error = regcomp(&arguments->expressions[index], text, REG_EXTENDED | REG_NOSUB);
	char reason[128];

	if (error == 0) {
		*ret_expression = &arguments->expressions[index];
		return true;
	}
	regerror(error, &arguments->expressions[index], reason, sizeof(reason));
	fprintf(stderr, PROGRAM ": not an extended regular expression: \"%s\" (%s)\n", text,
		reason);
	return false;
}

static bool take_focus(struct arguments *arguments, const char *text)
{
	return take_expression(arguments, 0, text, &arguments->options.view.focus);
}

static bool take_ignore(struct arguments *arguments, const char *text)
{
	return take_expression(arguments, 1, text, &arguments->options.view.ignore);
}

static bool take_hide(struct arguments *arguments, const char *text)
{
	return take_expression(arguments, 2, text, &arguments->options.view.hide);
}

static bool take_show(struct arguments *arguments, const char *text)
{
	return take_expression(arguments, 3, text, &arguments->options.view.show);
}

static bool take_minimum(struct arguments *arguments, const char *text)
{
	char *end;

	errno = 0;
	arguments->options.minimum = strtod(text, &end);
	end += *end == '%';
	return errno == 0 && end != text && *end == '\0' && arguments->options.minimum >= 0 &&
	       arguments->options.minimum <= 100;
}

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_format(struct arguments *arguments, const char *text)
{
	/* "text" is the table of functions: the other formats are for programs. */
	arguments->report = format_report_find(strcmp(text, "text") == 0 ? "top" : text);
	return arguments->report;
}

static bool format_at(size_t index, struct options_word *ret_word)
{
	const struct format_report_ops *report = format_reports[index];

	if (report)
		*ret_word = (struct options_word){ report->name, report->description };
	return report;
}

static bool memory_at(size_t index, struct options_word *ret_word)
{
	if (index < FORMAT_MEMORY_COUNT)
		*ret_word = (struct options_word){ format_memory_name((enum format_memory)index),
						   index == 0 ? "default" : NULL, (unsigned)index };
	return index < FORMAT_MEMORY_COUNT;
}

static const struct options_word lines[] = {
	{ "line", "by line (default, but not for top)", FORMAT_LINES_LINE },
	{ "function", "by function (default for top)", FORMAT_LINES_FUNCTION },
	{ 0 },
};

static const struct options_word annotations[] = {
	{ "jit", "compiled frames by _[j], or ~_[j] if approximate", FORMAT_ANNOTATE_JIT },
	{ "trace", "compiled frames by the number of the trace, with ~ if approximate",
	  FORMAT_ANNOTATE_TRACE },
	{ "kind",
	  "frames of each kind: _[j] compiled, _[l] other Lua, _[b] built-in, _[c] C function, "
	  "_[a] activity, _[p] process, _[v] LuaJIT",
	  FORMAT_ANNOTATE_KIND },
	{ 0 },
};

static const struct options_word natives[] = {
	{ "program", "the program's own (default of the reports for people)",
	  FORMAT_NATIVE_PROGRAM },
	{ "all", "all (default of the formats for programs)", FORMAT_NATIVE_ALL },
	{ "none", "none", FORMAT_NATIVE_NONE },
	{ 0 },
};

static const struct options_word roots[] = {
	{ "none", "default", 0 },
	{ "process", NULL, FORMAT_ROOTS_PROCESS },
	{ "thread", NULL, FORMAT_ROOTS_THREAD },
	{ "process,thread", NULL, FORMAT_ROOTS_PROCESS | FORMAT_ROOTS_THREAD },
	{ 0 },
};

static const struct options_entry entries[] = {
	{ "format", 'f', OPTIONS_WORD, "FORMAT",
	  "format of the report, see below (default: by the suffix of OUT, else top)",
	  .section = "Report", .word_at = format_at, .words_section = "Formats",
	  .take = take_format, .refused = "unknown format" },
	{ "output", 'o', OPTIONS_FILE, "OUT", "write to OUT instead of standard output (-)",
	  OPTIONS_INTO(output) },
	{ "lines", 0, OPTIONS_WORD, "WHICH", "how to distinguish Lua frames", .words = lines,
	  OPTIONS_INTO(options.lines), .refused = "not a choice of lines" },
	{ "annotate", 0, OPTIONS_WORD, "WHICH", "mark Lua frames", .words = annotations,
	  OPTIONS_INTO(options.annotate), .refused = "not a choice of marks" },
	{ "roots", 0, OPTIONS_WORD, "WHICH",
	  "begin chains of folded, svg and html, if the profile has them, with", .words = roots,
	  OPTIONS_INTO(options.roots), .refused = "not a choice of roots" },
	{ "native", 0, OPTIONS_WORD, "WHICH", "which native frames to show", .words = natives,
	  OPTIONS_INTO(options.view.native), .refused = "not a choice of native frames" },
	{ "focus", 0, OPTIONS_TEXT, "REGEX", "only samples with a frame that REGEX matches",
	  .take = take_focus },
	{ "ignore", 0, OPTIONS_TEXT, "REGEX", "no samples with a frame that REGEX matches",
	  .take = take_ignore },
	{ "hide", 0, OPTIONS_TEXT, "REGEX", "without the frames that REGEX matches",
	  .take = take_hide },
	{ "show", 0, OPTIONS_TEXT, "REGEX", "only the frames that REGEX matches",
	  .take = take_show },
	{ "top", 0, OPTIONS_NUMBER, "COUNT", "at most COUNT rows in top and markdown, 0 for all",
	  .max = ROWS_MAX, OPTIONS_INTO(options.top), .refused = "not a number of rows" },
	{ "min", 0, OPTIONS_TEXT, "PERCENT",
	  "in top and markdown only functions with PERCENT of the samples or more, callees "
	  "included",
	  .take = take_minimum, .refused = "not a percentage" },
	{ "title", 0, OPTIONS_TEXT, "TITLE",
	  "title of the flame graph, of the tables of markdown, and of the profile in speedscope "
	  "and Firefox",
	  OPTIONS_INTO(options.title) },
	{ "quiet", 'q', .help = "no progress bar", OPTIONS_INTO(quiet) },

	{ "diff", 0, OPTIONS_FILE, "BASE",
	  "show what changed since the profile BASE, and which changes are significant",
	  .section = "Differences and rules", OPTIONS_INTO(base) },
	{ "fail-on", 0, OPTIONS_TEXT, "RULE",
	  "exit with 3 if the profile certainly breaks RULE: 'self>5%', 'total>30%', "
	  "'func:NAME>10%', 'gc>15%', 'compiled<80%', and with --diff '+2%' or 'func:NAME+1%'",
	  .is_repeated = true, .take = take_rule },
	{ "budget", 0, OPTIONS_FILE, "RULES",
	  "the same with the rules in the file RULES, one a line", .is_repeated = true,
	  .take = take_rules },
	{ "junit", 0, OPTIONS_FILE, "XML", "also write the verdicts to XML, for CI servers",
	  OPTIONS_INTO(junit) },
	{ "summary", 0, OPTIONS_FILE, "PAGE",
	  "append verdicts and the markdown report to PAGE, such as $GITHUB_STEP_SUMMARY",
	  OPTIONS_INTO(summary) },

	{ "memory", 0, OPTIONS_WORD, "VALUE", "what call chains count",
	  .section = "Memory profiles", .word_at = memory_at, OPTIONS_INTO(options.memory),
	  .refused = "not a choice of values" },
	{ "leak-only", .help = "show the heap without its events",
	  OPTIONS_INTO(options.leak_only) },
	{ "human-readable", .help = "show sizes in B, KiB, MiB and GiB",
	  OPTIONS_INTO(options.human_readable) },
};

static const char *const usage[] = {
	"[OPTION]... FILE...",
	"[OPTION]... --diff BASE FILE...",
	NULL,
};

static const struct options options = {
	.program = PROGRAM,
	.usage = usage,
	.about = "Print a profile recorded by ljrecord or by Tarantool's LuaJIT, a profile of "
		 "pprof, or folded call chains. Several files add up. FILE may be - for standard "
		 "input, and compressed by gzip.",
	.ending = "Exit codes: 0 done, 1 usage, 3 a rule is broken, 4 output failed, 6 no readable "
		  "profile.",
	.operand = OPTIONS_FILES,
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
};

/* ---- Combinations ----------------------------------------------------------------------- */

static int refuse(const char *text, const char *argument)
{
	return options_refuse(PROGRAM, text, argument);
}

static const char *suffixes_at(size_t index)
{
	return format_reports[index] ? format_report_suffixes(format_reports[index]) : NULL;
}

/** Whether the path is a device or a pipe, whose name says nothing. */
static bool is_no_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/** Choose by the output's name if no format is given. */
static int choose_report(struct arguments *arguments)
{
	const char *output = arguments->output;

	if (!arguments->report && output) {
		arguments->report = format_report_for(output);
		/* A sysprof stream has more than a profile keeps. */
		if (!arguments->report && format_writer_for(output))
			return refuse(
				"only ljrecord writes the format of this suffix: give --format "
				"with --output",
				output);
		if (!arguments->report && format_has_suffix(output) && !is_no_file(output))
			return options_refuse_suffix(PROGRAM, suffixes_at, output);
	}
	if (!arguments->report)
		arguments->report = format_report_find("top");
	return 0;
}

int report_arguments_parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret;

	ret_arguments->options.top = ROWS_NOT_GIVEN;
	ret = options_parse(&options, argc, argv, ret_arguments, &first);
	if (ret >= 0)
		return ret;
	/* Reports have their own number of rows for 0. */
	if (ret_arguments->options.top == ROWS_NOT_GIVEN)
		ret_arguments->options.top = 0;
	else if (ret_arguments->options.top == 0)
		ret_arguments->options.top = ROWS_MAX;
	if (first == argc)
		return refuse("FILE is missing", NULL);
	ret_arguments->inputs = argv + first;
	ret_arguments->input_count = (size_t)(argc - first);
	if (ret_arguments->output && strcmp(ret_arguments->output, "-") == 0)
		ret_arguments->output = NULL;
	if (choose_report(ret_arguments))
		return REPORT_USAGE;
	if (ret_arguments->base && !ret_arguments->report->diff)
		return refuse("no --diff with --format", ret_arguments->report->name);
	if (ret_arguments->budget && !ret_arguments->base &&
	    format_budget_needs_base(ret_arguments->budget))
		return refuse("a rule about changes goes with --diff=BASE", NULL);
	if (is_same(ret_arguments->output, ret_arguments->junit) ||
	    is_same(ret_arguments->output, ret_arguments->summary) ||
	    is_same(ret_arguments->junit, ret_arguments->summary))
		return refuse("two outputs have the same name", NULL);
	if (ret_arguments->junit && !ret_arguments->budget)
		return refuse("--junit goes with --fail-on or --budget", NULL);
	if (ret_arguments->report->is_binary &&
	    stdio_is_terminal(ret_arguments->output ? ret_arguments->output : "-"))
		return refuse("not for a terminal: give --output OUT with --format",
			      ret_arguments->report->name);
	return REPORT_DONE;
}

void report_arguments_deinit(struct arguments *arguments)
{
	const struct format_view *view = &arguments->options.view;
	const regex_t *expressions[] = { view->focus, view->ignore, view->hide, view->show };

	format_budget_destroy(arguments->budget);
	for (size_t i = 0; i < REPORT_EXPRESSIONS; i++)
		if (expressions[i])
			regfree(&arguments->expressions[i]);
}
