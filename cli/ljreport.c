/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"

/** Exit codes, as in ljreport(1). */
enum {
	EXIT_USAGE = 1,
	EXIT_OUTPUT = 4,
	EXIT_INPUT = 6,
};

struct arguments {
	const char *input;
	const char *output; /* NULL: standard output. */
	const struct format_report_ops *report;
	struct format_report_options options;
};

static void print_help(FILE *file)
{
	fputs("usage: ljreport [options] FILE\n"
	      "Print a profile recorded by ljrecord or by Tarantool's LuaJIT.\n"
	      "FILE may be - for standard input, and compressed by gzip.\n"
	      "\n"
	      "  -f, --format=FORMAT  one of the formats below (top)\n"
	      "  -o, --output=OUT     write to OUT instead of standard output\n"
	      "      --lines=WHAT     tell Lua frames apart by 'line' or by 'function'\n"
	      "      --annotate=WHAT  mark compiled Lua frames: 'jit' by _[j], 'trace' by the\n"
	      "                       number of the trace; ~ is approximate\n"
	      "      --title=TITLE    title of the flame graph\n"
	      "  -h, --help           print this help\n"
	      "  -V, --version        print the version\n"
	      "\n"
	      "formats:\n",
	      file);
	for (size_t i = 0; format_reports[i]; i++)
		fprintf(file, "  %-9s %s\n", format_reports[i]->name,
			format_reports[i]->description);
	fputs("\nexit status: 0 done, 1 wrong usage, 4 output failed, 6 no readable profile\n",
	      file);
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "ljreport: %s%s%s (see ljreport --help)\n", what, value ? " " : "",
		value ? value : "");
	return -1;
}

static int parse_lines(const char *value, struct arguments *arguments)
{
	if (strcmp(value, "line") == 0)
		arguments->options.lines = FORMAT_LINES_LINE;
	else if (strcmp(value, "function") == 0)
		arguments->options.lines = FORMAT_LINES_FUNCTION;
	else
		return usage_error("--lines is 'line' or 'function', not", value);
	return 0;
}

static int parse_annotate(const char *value, struct arguments *arguments)
{
	if (strcmp(value, "jit") == 0)
		arguments->options.annotate = FORMAT_ANNOTATE_JIT;
	else if (strcmp(value, "trace") == 0)
		arguments->options.annotate = FORMAT_ANNOTATE_TRACE;
	else
		return usage_error("--annotate is 'jit' or 'trace', not", value);
	return 0;
}

static int parse_format(const char *value, struct arguments *arguments)
{
	arguments->report = format_report_find(value);
	return arguments->report ? 0 : usage_error("unknown format", value);
}

/** Print what --help or --version ask for and leave. */
static void finish(bool version)
{
	if (version)
		puts("ljreport " LJPROF_VERSION);
	else
		print_help(stdout);
	exit(fflush(stdout) || ferror(stdout) ? EXIT_OUTPUT : EXIT_SUCCESS);
}

static int parse_option(int option, struct arguments *arguments)
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
	case 't':
		arguments->options.title = optarg;
		return 0;
	case 'h':
	case 'V':
		finish(option == 'V');
	}
	return usage_error("wrong option", NULL);
}

static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "lines", required_argument, NULL, 'l' },
		{ "annotate", required_argument, NULL, 'a' },
		{ "title", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	arguments->report = format_report_find("top");
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":f:o:hV", options, NULL)) != -1) {
		if (option == ':')
			return usage_error("a value is missing behind", argv[optind - 1]);
		if (option == '?')
			return usage_error("unknown option", argv[optind - 1]);
		if (parse_option(option, arguments))
			return -1;
	}
	if (optind + 1 != argc)
		return usage_error(optind == argc ? "FILE is missing" : "one FILE only, not also",
				   optind == argc ? NULL : argv[optind + 1]);
	arguments->input = argv[optind];
	return 0;
}

static int report_read_failure(const char *name, const struct failure *why)
{
	char text[512];

	format_describe_failure(why, name, text, sizeof(text));
	if (why->kind != FAILURE_INVALID)
		fprintf(stderr, "ljreport: %s\n", text);
	else if (why->address == 0)
		fprintf(stderr, "ljreport: %s (give a file written by ljrecord)\n", text);
	else
		fprintf(stderr, "ljreport: %s (the profile is not whole; record it again)\n", text);
	return EXIT_INPUT;
}

static int read_profile(const char *path, struct format_profile **ret_profile)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	FILE *file = standard ? stdin : fopen(path, "rbe");
	struct failure why = { 0 };
	int result = EXIT_SUCCESS;

	if (!file) {
		fprintf(stderr, "ljreport: %s: %s (give a file written by ljrecord)\n", name,
			strerror(errno));
		return EXIT_INPUT;
	}
	if (format_profile_read(file, ret_profile, &why))
		result = report_read_failure(name, &why);
	if (!standard)
		fclose(file);
	return result;
}

/** Print the report and see that all of it arrived. */
static int print_report(const struct format_profile *profile, const struct arguments *arguments,
			FILE *file)
{
	const char *name = arguments->output ? arguments->output : "standard output";
	struct failure why = { 0 };
	char text[256];

	if (arguments->report->print(profile, &arguments->options, file, &why)) {
		if (why.kind == FAILURE_NOT_FOUND) {
			fprintf(stderr,
				"ljreport: %s: a memory profile has no call chains (use -f top "
				"or -f counters)\n",
				arguments->input);
			return EXIT_INPUT;
		}
		failure_describe(&why, text, sizeof(text));
		fprintf(stderr, "ljreport: %s: %s\n", name, text);
		return EXIT_OUTPUT;
	}
	if (fflush(file) == 0 && !ferror(file))
		return EXIT_SUCCESS;
	/* The reader of a pipe has seen enough. */
	if (errno != EPIPE)
		fprintf(stderr, "ljreport: %s: %s (the report is not complete)\n", name,
			strerror(errno));
	return EXIT_OUTPUT;
}

static int write_report(const struct format_profile *profile, const struct arguments *arguments)
{
	FILE *file = stdout;
	int result;

	if (arguments->output) {
		file = fopen(arguments->output, "we");
		if (!file) {
			fprintf(stderr, "ljreport: %s: %s (choose another -o)\n", arguments->output,
				strerror(errno));
			return EXIT_OUTPUT;
		}
	}
	result = print_report(profile, arguments, file);
	if (fclose(file) && result == EXIT_SUCCESS) {
		fprintf(stderr, "ljreport: %s: %s (the report is not complete)\n",
			arguments->output ? arguments->output : "standard output", strerror(errno));
		result = EXIT_OUTPUT;
	}
	return result;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct format_profile *profile = NULL;
	int result;

	signal(SIGPIPE, SIG_IGN);
	if (parse_arguments(argc, argv, &arguments))
		return EXIT_USAGE;
	result = read_profile(arguments.input, &profile);
	if (result == EXIT_SUCCESS)
		result = write_report(profile, &arguments);
	format_profile_destroy(profile);
	return result;
}
