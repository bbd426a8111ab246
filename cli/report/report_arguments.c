/* SPDX-License-Identifier: MIT */
/* The command line of ljreport. */
#include "cli/report/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(FILE *file)
{
	fputs("usage: ljreport [options] FILE...\n"
	      "       ljreport [options] --diff=BASE FILE...\n"
	      "Print a profile recorded by ljrecord or by Tarantool's LuaJIT, a profile of pprof,\n"
	      "or folded call chains. Several files add up. FILE may be - for standard input, and\n"
	      "compressed by gzip.\n"
	      "\n"
	      "  -f, --format=FORMAT  one of the formats below (as the ending of OUT tells, or "
	      "top)\n"
	      "  -o, --output=OUT     write to OUT instead of standard output\n"
	      "      --lines=WHAT     tell Lua frames apart by 'line' or by 'function'\n"
	      "      --annotate=WHAT  mark compiled Lua frames: 'jit' by _[j], 'trace' by the\n"
	      "                       number of the trace; ~ is approximate; 'kind' marks\n"
	      "                       frames of each kind: _[j], _[l] other Lua, _[b] built-in,\n"
	      "                       _[c] C function, _[a] activity, _[p] process\n"
	      "      --roots=WHAT     begin chains of folded, svg and html with their 'process',\n"
	      "                       'thread', or 'process,thread', if the profile has them\n"
	      "      --title=TITLE    title of the flame graph, of the tables of markdown, and of\n"
	      "                       the profile in speedscope and Firefox\n"
	      "      --memory=VALUE   what call chains of a memory profile count: 'inuse_space',\n"
	      "                       'inuse_objects', 'alloc_space' or 'alloc_objects'\n"
	      "      --leak-only      show the heap of a memory profile without its events\n"
	      "      --human-readable\n"
	      "                       sizes of a memory profile in B, KiB, MiB and GiB\n"
	      "      --diff=BASE      show what changed since the profile BASE, and which changes\n"
	      "                       are significant\n"
	      "      --fail-on=RULE   exit with 3 if the profile certainly breaks RULE: "
	      "'self>5%',\n"
	      "                       'total>30%', 'func:NAME>10%', 'gc>15%', 'compiled<80%', and\n"
	      "                       with --diff '+2%' or 'func:NAME+1%'; may be given several\n"
	      "                       times\n"
	      "      --budget=RULES   the same with the rules in the file RULES, one a line\n"
	      "      --junit=XML      also write the verdicts to XML, for CI servers\n"
	      "      --summary=PAGE   append verdicts and the markdown report to PAGE, such as\n"
	      "                       $GITHUB_STEP_SUMMARY\n"
	      "  -q, --quiet          no progress bar\n"
	      "  -h, --help           print this help\n"
	      "  -V, --version        print the version\n"
	      "\n"
	      "formats:\n",
	      file);
	for (size_t i = 0; format_reports[i]; i++)
		fprintf(file, "  %-11s %s\n", format_reports[i]->name,
			format_reports[i]->description);
	fputs("\nexit status: 0 done, 1 wrong usage, 3 a rule is broken, 4 output failed,\n"
	      "6 no readable profile\n",
	      file);
}

/** Whether one output would replace another. */
static bool is_same(const char *one, const char *other)
{
	return one && other && strcmp(one, other) == 0 && strcmp(one, "-") != 0;
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "ljreport: %s%s%s (see ljreport --help)\n", what, value ? " " : "",
		value ? value : "");
	return -1;
}

static int parse_lines(const char *value, struct report_arguments *arguments)
{
	if (strcmp(value, "line") == 0)
		arguments->options.lines = FORMAT_LINES_LINE;
	else if (strcmp(value, "function") == 0)
		arguments->options.lines = FORMAT_LINES_FUNCTION;
	else
		return usage_error("--lines is 'line' or 'function', not", value);
	return 0;
}

static int parse_annotate(const char *value, struct report_arguments *arguments)
{
	if (strcmp(value, "jit") == 0)
		arguments->options.annotate = FORMAT_ANNOTATE_JIT;
	else if (strcmp(value, "trace") == 0)
		arguments->options.annotate = FORMAT_ANNOTATE_TRACE;
	else if (strcmp(value, "kind") == 0)
		arguments->options.annotate = FORMAT_ANNOTATE_KIND;
	else
		return usage_error("--annotate is 'jit', 'trace' or 'kind', not", value);
	return 0;
}

static int parse_roots(const char *value, struct report_arguments *arguments)
{
	if (strcmp(value, "process") == 0)
		arguments->options.roots = FORMAT_ROOTS_PROCESS;
	else if (strcmp(value, "thread") == 0)
		arguments->options.roots = FORMAT_ROOTS_THREAD;
	else if (strcmp(value, "process,thread") == 0)
		arguments->options.roots = FORMAT_ROOTS_PROCESS | FORMAT_ROOTS_THREAD;
	else
		return usage_error("--roots is 'process', 'thread' or 'process,thread', not",
				   value);
	return 0;
}

static int parse_memory(const char *value, struct report_arguments *arguments)
{
	for (int i = 0; i < FORMAT_MEMORY_COUNT; i++)
		if (strcmp(value, format_memory_name((enum format_memory)i)) == 0) {
			arguments->options.memory = (enum format_memory)i;
			return 0;
		}
	return usage_error("--memory is 'inuse_space', 'inuse_objects', 'alloc_space' or "
			   "'alloc_objects', not",
			   value);
}

static int parse_format(const char *value, struct report_arguments *arguments)
{
	/* A table of functions is text, as opposed to what other programs read. */
	arguments->report = format_report_find(strcmp(value, "text") == 0 ? "top" : value);
	return arguments->report ? 0 : usage_error("unknown format", value);
}

/* ---- Rules ------------------------------------------------------------------------------ */

static int make_budget(struct report_arguments *arguments)
{
	if (!arguments->budget)
		arguments->budget = format_budget_create();
	return arguments->budget ? 0 : usage_error("out of memory", NULL);
}

static int add_rule(struct report_arguments *arguments, const char *text)
{
	struct failure why = { 0 };
	char reason[256];

	if (make_budget(arguments))
		return -1;
	if (format_budget_add(arguments->budget, text, &why) == 0)
		return 0;
	failure_describe(&why, reason, sizeof(reason));
	return usage_error(why.kind == FAILURE_INVALID
				   ? "--fail-on takes a rule such as 'self>5%', "
				     "'func:NAME>10%' or '+2%', not"
				   : reason,
			   why.kind == FAILURE_INVALID ? text : NULL);
}

static int add_rules(struct report_arguments *arguments, const char *path)
{
	FILE *file = fopen(path, "re");
	struct failure why = { 0 };
	char reason[256];
	int result = -1;

	if (!file) {
		fprintf(stderr, "ljreport: %s: %s (give --budget a file of rules)\n", path,
			strerror(errno));
		return -1;
	}
	if (make_budget(arguments) == 0) {
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
	return result;
}

/* ---- Options ---------------------------------------------------------------------------- */

/** Print what --help or --version ask for and leave. */
static void finish(bool version)
{
	if (version)
		puts("ljreport " LJPROF_VERSION);
	else
		print_help(stdout);
	exit(fflush(stdout) || ferror(stdout) ? REPORT_OUTPUT : REPORT_DONE);
}

static int parse_option(int option, struct report_arguments *arguments)
{
	switch (option) {
	case 'f':
		return parse_format(optarg, arguments);
	case 'o':
		arguments->output = optarg;
		return 0;
	case 'l':
		return parse_lines(optarg, arguments);
	case 'a':
		return parse_annotate(optarg, arguments);
	case 'R':
		return parse_roots(optarg, arguments);
	case 't':
		arguments->options.title = optarg;
		return 0;
	case 'M':
		return parse_memory(optarg, arguments);
	case 'L':
		arguments->options.leak_only = true;
		return 0;
	case 'H':
		arguments->options.human_readable = true;
		return 0;
	case 'd':
		arguments->base = optarg;
		return 0;
	case 'r':
		return add_rule(arguments, optarg);
	case 'b':
		return add_rules(arguments, optarg);
	case 'j':
		arguments->junit = optarg;
		return 0;
	case 's':
		arguments->summary = optarg;
		return 0;
	case 'q':
		arguments->quiet = true;
		return 0;
	case 'h':
	case 'V':
		finish(option == 'V');
	}
	return usage_error("wrong option", NULL);
}

/** What the output's name tells, where no format is given. */
static int choose_report(struct report_arguments *arguments)
{
	const char *output = arguments->output;

	if (!arguments->report && output) {
		arguments->report = format_report_for(output);
		/* A sysprof stream has more than a profile keeps. */
		if (!arguments->report && format_writer_for(output))
			return usage_error("no report has the form that the name tells: give "
					   "--format with --output",
					   output);
	}
	if (!arguments->report)
		arguments->report = format_report_find("top");
	return 0;
}

static int parse(int argc, char **argv, struct report_arguments *arguments)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "lines", required_argument, NULL, 'l' },
		{ "annotate", required_argument, NULL, 'a' },
		{ "roots", required_argument, NULL, 'R' },
		{ "title", required_argument, NULL, 't' },
		{ "memory", required_argument, NULL, 'M' },
		{ "leak-only", no_argument, NULL, 'L' },
		{ "human-readable", no_argument, NULL, 'H' },
		{ "diff", required_argument, NULL, 'd' },
		{ "fail-on", required_argument, NULL, 'r' },
		{ "budget", required_argument, NULL, 'b' },
		{ "junit", required_argument, NULL, 'j' },
		{ "summary", required_argument, NULL, 's' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":f:o:qhV", options, NULL)) != -1) {
		if (option == ':')
			return usage_error("a value is missing behind", argv[optind - 1]);
		if (option == '?')
			return usage_error("unknown option", argv[optind - 1]);
		if (parse_option(option, arguments))
			return -1;
	}
	if (optind == argc)
		return usage_error("FILE is missing", NULL);
	arguments->inputs = argv + optind;
	arguments->input_count = (size_t)(argc - optind);
	if (choose_report(arguments))
		return -1;
	if (arguments->base && !arguments->report->diff)
		return usage_error("no --diff with --format", arguments->report->name);
	if (arguments->budget && !arguments->base && format_budget_needs_base(arguments->budget))
		return usage_error("a rule about changes goes with --diff=BASE", NULL);
	if (is_same(arguments->output, arguments->junit) ||
	    is_same(arguments->output, arguments->summary) ||
	    is_same(arguments->junit, arguments->summary))
		return usage_error("two outputs have the same name", NULL);
	if (arguments->junit && !arguments->budget)
		return usage_error("--junit goes with --fail-on or --budget", NULL);
	if (arguments->report->is_binary && !arguments->output && isatty(STDOUT_FILENO))
		return usage_error("nothing for a terminal: give --output OUT with --format",
				   arguments->report->name);
	return 0;
}

int report_arguments_parse(int argc, char **argv, struct report_arguments *ret_arguments)
{
	return parse(argc, argv, ret_arguments) ? REPORT_USAGE : REPORT_DONE;
}

void report_arguments_deinit(struct report_arguments *arguments)
{
	format_budget_destroy(arguments->budget);
}
