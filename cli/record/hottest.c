/* SPDX-License-Identifier: MIT */
/* Which lines of a new profile are the hottest ones? */
#include "cli/record/hottest.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/stdio_setup.h"
#include "format/report.h"

enum { LINES_SHOWN = 10 };

/* Make the report as ljreport prints it. @param width Columns of the terminal; 0: any. @return
 * Freed by the caller; NULL if the profile cannot be read. */
static char *make_report(FILE *profile_file, unsigned width)
{
	const struct format_report_options options = { .lines = FORMAT_LINES_LINE,
						       .top = LINES_SHOWN,
						       .width = width };
	const struct format_report_ops *report = format_report_find("top");
	struct format_profile *profile;
	struct failure why;
	char *text = NULL;
	size_t len;
	FILE *file;

	profile = format_profile_create(&why);
	if (profile && format_profile_add(profile, profile_file, &why) == 0) {
		file = open_memstream(&text, &len);
		if (file && (format_report_print(report, NULL, profile, &options, file, &why) |
			     fclose(file)) != 0) {
			free(text);
			text = NULL;
		}
	}
	format_profile_destroy(profile);
	return text;
}

void hottest_print(FILE *file, const char *path)
{
	unsigned lines, columns,
		width = stdio_terminal_size(fileno(file), &lines, &columns) ? columns : 0;
	FILE *profile_file = fopen(path, "rbe");
	char *text = profile_file ? make_report(profile_file, width) : NULL;
	/* Below the number of samples, which the summary has. */
	char *rest = text ? strstr(text, "\n\n") : NULL;

	if (rest) {
		int shown = 0;

		fputc('\n', file);
		/* And the heads of the columns. */
		for (char *line = strtok(rest, "\n"); line && shown <= LINES_SHOWN; shown++) {
			/* From here on no line ran itself. */
			if (shown && strtod(line, NULL) == 0)
				break;
			fprintf(file, "%s\n", line);
			line = strtok(NULL, "\n");
		}
		fprintf(file, "\nljreport %s shows more\n", path);
	}
	free(text);
	if (profile_file)
		fclose(profile_file);
}
