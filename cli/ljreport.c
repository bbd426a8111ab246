/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/report.h"

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
	return REPORT_INPUT;
}

/** Add a file to what was read before. */
static int add_profile(const char *path, struct format_profile *profile)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	FILE *file = standard ? stdin : fopen(path, "rbe");
	struct failure why = { 0 };
	int result = REPORT_DONE;

	if (!file) {
		fprintf(stderr, "ljreport: %s: %s (give a file written by ljrecord)\n", name,
			strerror(errno));
		return REPORT_INPUT;
	}
	if (format_profile_add(profile, file, &why))
		result = report_read_failure(name, &why);
	if (!standard)
		fclose(file);
	return result;
}

/** Print the report and see that all of it arrived. */
static int print_report(const struct format_profile *base, const struct format_profile *profile,
			const struct report_arguments *arguments, FILE *file)
{
	const char *name = arguments->output ? arguments->output : "standard output";
	const struct format_report_ops *report = arguments->report;
	struct failure why = { 0 };
	char text[256];

	if (base ? report->diff(base, profile, &arguments->options, file, &why)
		 : report->print(profile, &arguments->options, file, &why)) {
		if (why.kind == FAILURE_NOT_FOUND) {
			fprintf(stderr,
				"ljreport: %s: a memory profile has no call chains (use -f top "
				"or -f counters)\n",
				arguments->inputs[0]);
			return REPORT_INPUT;
		}
		failure_describe(&why, text, sizeof(text));
		fprintf(stderr, "ljreport: %s: %s\n", name, text);
		return REPORT_OUTPUT;
	}
	if (fflush(file) == 0 && !ferror(file))
		return REPORT_DONE;
	/* The reader of a pipe has seen enough. */
	if (errno != EPIPE)
		fprintf(stderr, "ljreport: %s: %s (the report is not complete)\n", name,
			strerror(errno));
	return REPORT_OUTPUT;
}

static int write_report(const struct format_profile *base, const struct format_profile *profile,
			const struct report_arguments *arguments)
{
	FILE *file = stdout;
	int result;

	if (arguments->output) {
		file = fopen(arguments->output, "we");
		if (!file) {
			fprintf(stderr, "ljreport: %s: %s (choose another -o)\n", arguments->output,
				strerror(errno));
			return REPORT_OUTPUT;
		}
	}
	result = print_report(base, profile, arguments, file);
	if (fclose(file) && result == REPORT_DONE) {
		fprintf(stderr, "ljreport: %s: %s (the report is not complete)\n",
			arguments->output ? arguments->output : "standard output", strerror(errno));
		result = REPORT_OUTPUT;
	}
	return result;
}

/** Read files into one profile, which the caller owns in any case. @return An exit code. */
static int read_all(char *const *paths, size_t count, struct format_profile **ret_profile)
{
	struct failure why;
	int result = REPORT_DONE;

	*ret_profile = format_profile_create(&why);
	if (!*ret_profile)
		return report_read_failure(paths[0], &why);
	for (size_t i = 0; i < count && result == REPORT_DONE; i++)
		result = add_profile(paths[i], *ret_profile);
	return result;
}

static int run(struct report_arguments *arguments)
{
	struct format_profile *base = NULL, *profile = NULL;
	char *base_path = (char *)(uintptr_t)arguments->base;
	int result = arguments->base ? read_all(&base_path, 1, &base) : REPORT_DONE;

	if (result == REPORT_DONE)
		result = read_all(arguments->inputs, arguments->input_count, &profile);
	if (result == REPORT_DONE)
		result = write_report(base, profile, arguments);
	if (result == REPORT_DONE && arguments->budget)
		result = report_judge(arguments, base, profile);
	format_profile_destroy(base);
	format_profile_destroy(profile);
	return result;
}

int main(int argc, char **argv)
{
	struct report_arguments arguments = { 0 };
	int result;

	signal(SIGPIPE, SIG_IGN);
	result = report_arguments_parse(argc, argv, &arguments);
	if (result == REPORT_DONE)
		result = run(&arguments);
	report_arguments_deinit(&arguments);
	return result;
}
