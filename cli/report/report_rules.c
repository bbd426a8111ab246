/* SPDX-License-Identifier: MIT */
/* How are broken rules reported, on standard error and for CI servers? */
#include "cli/report/progress.h"
#include "cli/report/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "format/text.h"

static void tell(const struct format_budget *budget)
{
	size_t count;
	const struct format_verdict *verdicts = format_budget_verdicts(budget, &count);

	for (size_t i = 0; i < count; i++) {
		if (verdicts[i].failed)
			fprintf(stderr, "ljreport: broken: %s: %s\n", verdicts[i].rule,
				verdicts[i].reason);
		else if (verdicts[i].is_unmatched)
			fprintf(stderr, "ljreport: kept: %s: no function has that name\n",
				verdicts[i].rule);
	}
}

static int write_junit(const struct arguments *arguments)
{
	FILE *file = fopen(arguments->junit, "we");
	bool good = file != NULL;

	if (file) {
		format_budget_print_junit(arguments->budget, arguments->inputs[0], file);
		good = !ferror(file);
		good = fclose(file) == 0 && good;
	}
	if (good)
		return REPORT_DONE;
	fprintf(stderr, "ljreport: %s: %s (choose another --junit)\n", arguments->junit,
		strerror(errno));
	return REPORT_OUTPUT;
}

int report_judge(const struct arguments *arguments, const struct format_profile *base,
		 const struct format_profile *profile)
{
	struct failure why = { 0 };
	char text[PATH_MAX + 256];
	size_t failed;
	int result;

	if (format_budget_judge(arguments->budget, base, profile, arguments->options.lines, &failed,
				&why)) {
		progress_stop();
		format_describe_failure(&why, arguments->inputs[0], text, sizeof(text));
		fprintf(stderr, "ljreport: %s\n", text);
		return REPORT_INPUT;
	}
	progress_stop();
	tell(arguments->budget);
	result = arguments->junit ? write_junit(arguments) : REPORT_DONE;
	/* The verdict is the main result, whatever else fails. */
	return failed ? REPORT_BROKEN : result;
}
