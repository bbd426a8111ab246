/* SPDX-License-Identifier: MIT */
/* Private to cli: what was ljreport asked to do? */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "format/budget.h"

/** Exit codes, as in ljreport(1). */
enum {
	REPORT_DONE = 0,
	REPORT_USAGE = 1,
	REPORT_BROKEN = 3, /* a rule is broken */
	REPORT_OUTPUT = 4,
	REPORT_INPUT = 6,
};

/** Most expressions of a view. */
enum { REPORT_EXPRESSIONS = 4 };

/** Values of the command line, which owns the strings. */
struct arguments {
	char **inputs;
	size_t input_count;
	const char *base;    /**< NULL: compare with nothing. */
	const char *output;  /**< NULL: standard output. */
	const char *junit;   /**< NULL: write none. */
	const char *summary; /**< File to append to; NULL: none. */
	bool quiet;
	const struct format_report_ops *report;
	struct format_report_options options;
	regex_t expressions[REPORT_EXPRESSIONS]; /**< Those of options.view, where it has them. */
	struct format_budget *budget;		 /**< NULL: no rules. */
};

/**
 * Read the command line. --help and --version print and end the process.
 * @return 0, or an exit code after a message.
 */
int report_arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void report_arguments_deinit(struct arguments *arguments);

/**
 * Judge a profile by the rules, and report broken ones on standard error.
 * @param base May be NULL.
 * @return An exit code.
 */
int report_judge(const struct arguments *arguments, const struct format_profile *base,
		 const struct format_profile *profile);

#endif
