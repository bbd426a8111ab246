/* SPDX-License-Identifier: MIT */
/* Files as ljreport takes them, whatever their form: read, printed in all forms, and what is
 * printed read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static struct format_profile *read_bytes(const void *bytes, size_t size)
{
	FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "rb");
	struct format_profile *profile = NULL;
	struct failure why = { 0 };

	MUST(file);
	if (format_profile_read(file, &profile, &why))
		MUST(why.kind != FAILURE_NONE);
	fclose(file);
	return profile;
}

static char *print(const struct format_profile *profile, const struct format_report_ops *report,
		   size_t *ret_len)
{
	const struct format_report_options options = { .title = "fuzz",
						       .annotate = FORMAT_ANNOTATE_JIT };
	struct failure why;
	char *text;
	FILE *file = open_memstream(&text, ret_len);
	int result;

	MUST(file);
	result = report->print(profile, &options, file, &why);
	MUST(fclose(file) == 0);
	/* Only call chains are refused, where there are none. */
	MUST(result == 0 || why.kind == FAILURE_NOT_FOUND);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct format_profile *profile = size ? read_bytes(data, size) : NULL;
	size_t len;

	if (!profile)
		return 0;
	for (size_t i = 0; format_reports[i]; i++) {
		char *text = print(profile, format_reports[i], &len);

		if (len > 0 && format_writer_find(format_reports[i]->name) &&
		    format_reports[i]->is_binary)
			format_profile_destroy(read_bytes(text, len));
		free(text);
	}
	format_profile_destroy(profile);
	return 0;
}
