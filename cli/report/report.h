/* SPDX-License-Identifier: MIT */
/* Private to cli: what ljreport was asked for. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "format/budget.h"

/** Exit codes, as in ljreport(1). */
enum {
	REPORT_DONE = 0,
	REPORT_USAGE = 1,
	REPORT_BROKEN = 3, /* a rule */
	REPORT_OUTPUT = 4,
	REPORT_INPUT = 6,
};

/** The command line; strings are its own. */
struct arguments {
	char **inputs;
	size_t input_count;
	const char *base;    /**< NULL: nothing is compared. */
	const char *output;  /**< NULL: standard output. */
	const char *junit;   /**< NULL: none is written. */
	const char *summary; /**< Appended to; NULL: none is. */
	bool quiet;
	const struct format_report_ops *report;
	struct format_report_options options;
	struct format_budget *budget; /**< NULL: no rules. */
};

/** @return 0, or an exit code after a message. Leaves where help is asked for. */
int report_arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void report_arguments_deinit(struct arguments *arguments);

/** Judge a profile by the rules; tell on standard error what is broken. @param base May be NULL.
 *  @return An exit code. */
int report_judge(const struct arguments *arguments, const struct format_profile *base,
		 const struct format_profile *profile);

#endif
