/* SPDX-License-Identifier: MIT */
/* Files as ljreport takes them, whatever their form: read, printed in all forms, and what is
 * printed in a form that is read comes back with as many samples. Compared with itself, nothing has
 * changed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static struct format_profile *read_bytes(const void *bytes, size_t size)
{
	FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "rb");
	struct format_profile *profile = format_profile_create(NULL);
	struct failure why = { 0 };

	MUST(file && profile);
	format_profile_keep_order(profile, FORMAT_ORDER_NEEDED);
	if (format_profile_add(profile, file, &why)) {
		MUST(why.kind != FAILURE_NONE);
		format_profile_destroy(profile);
		profile = NULL;
	}
	fclose(file);
	return profile;
}

static char *print_with(const struct format_profile *profile,
			const struct format_report_ops *report, enum format_annotate annotate,
			unsigned roots, size_t *ret_len)
{
	const struct format_report_options options = { .title = "fuzz",
						       .annotate = annotate,
						       .roots = roots };
	struct failure why;
	char *text;
	FILE *file = open_memstream(&text, ret_len);
	int result;

	MUST(file);
	result = report->print(profile, &options, file, &why);
	MUST(fclose(file) == 0);
	/* Only call chains are refused, where there are none, what is no samples in charts, and too
	 * many samples as perf's text. */
	MUST(result == 0 || why.kind == FAILURE_NOT_FOUND ||
	     (why.kind == FAILURE_DENIED && !format_profile_has_samples(profile)) ||
	     (why.kind == FAILURE_LIMIT && strcmp(report->name, "perf") == 0));
	return text;
}

static char *print(const struct format_profile *profile, const struct format_report_ops *report,
		   size_t *ret_len)
{
	return print_with(profile, report, FORMAT_ANNOTATE_JIT, 0, ret_len);
}

static uint64_t samples_of(const struct format_profile *profile)
{
	size_t len;
	char *text = print(profile, format_report_find("counters"), &len);
	uint64_t samples = strtoull(text + strlen("samples "), NULL, 10);

	free(text);
	return samples;
}

static void must_come_back(const struct format_profile *profile, const char *text, size_t len)
{
	struct format_profile *again = read_bytes(text, len);

	MUST(again && samples_of(again) == samples_of(profile));
	format_profile_destroy(again);
}

/** With all that can be said of a chain in a line. */
static void must_come_back_told(const struct format_profile *profile)
{
	size_t len;
	char *text = print_with(profile, format_report_find("folded"), FORMAT_ANNOTATE_KIND,
				FORMAT_ROOTS_PROCESS | FORMAT_ROOTS_THREAD, &len);

	if (len > 0)
		must_come_back(profile, text, len);
	free(text);
}

static void judge(const struct format_profile *profile)
{
	struct format_budget *budget = format_budget_create();
	struct failure why;
	size_t failed;

	MUST(budget && format_budget_add(budget, "+0%", &why) == 0 &&
	     format_budget_add(budget, "self>5%", &why) == 0);
	if (format_budget_judge(budget, profile, profile, FORMAT_LINES_DEFAULT, &failed, &why) == 0)
		MUST(failed == format_budget_verdicts(budget, &failed)[1].failed);
	MUST(!format_budget_verdicts(budget, &failed)[0].failed);
	format_budget_destroy(budget);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct format_profile *profile = size ? read_bytes(data, size) : NULL;
	size_t len;

	if (!profile)
		return 0;
	for (size_t i = 0; format_reports[i]; i++) {
		bool is_perf = strcmp(format_reports[i]->name, "perf") == 0;
		char *text;

		/* Each sample is some lines of it. */
		if (is_perf && samples_of(profile) > 10000)
			continue;
		text = print(profile, format_reports[i], &len);
		if (strcmp(format_reports[i]->name, "pprof") == 0 && len > 0)
			must_come_back(profile, text, len);
		if (strcmp(format_reports[i]->name, "folded") == 0 && len > 0)
			must_come_back(profile, text, len);
		free(text);
	}
	must_come_back_told(profile);
	judge(profile);
	format_profile_destroy(profile);
	return 0;
}
