/* SPDX-License-Identifier: MIT */
/* Does a profile keep the rules that it has to keep? */
#ifndef FORMAT_BUDGET_H
#define FORMAT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/report.h"

/**
 * Rules that a profile has to keep, and whether it does.
 *
 *	self>5%		no function itself has more of all samples
 *	total>30%	no function has more, with all that it calls
 *	func:NAME>10%	that function with all that it calls; NAME may have * and ?
 *	gc>15%		the garbage collector
 *	compiled<80%	machine code of traces has no less
 *	+2%		no function has gained that percentage of all samples, itself or in all;
 *			also self+2%, total+2%, func:NAME+2%, gc+2%, compiled-2%
 *
 * A rule is broken only where that is certain: where all of the interval of what was measured lies
 * beyond the bound. In one of a hundred judgements at most chance breaks any.
 */
struct format_budget;

/** How a rule was kept. */
struct format_verdict {
	const char *rule; /**< As it was given. */
	bool failed;
	bool is_unmatched; /**< It is about a function that neither profile has. */
	char *reason;	   /**< One line: what broke it; "" where nothing did. */
};

/** @return NULL without memory. */
struct format_budget *format_budget_create(void);
void format_budget_destroy(struct format_budget *budget);

/** @param why FAILURE_INVALID where it is no rule, FAILURE_LIMIT, FAILURE_NO_MEMORY. */
int format_budget_add(struct format_budget *budget, const char *text, struct failure *why);

/** One rule in a line; # begins a comment. @param why With the number of the line in `address`. */
int format_budget_read(struct format_budget *budget, FILE *file, struct failure *why);

/** Whether a rule is about changes. */
bool format_budget_needs_base(const struct format_budget *budget);

/**
 * @param base NULL: there is none, and no rule needs it.
 * @param lines LINE: the rules are about lines, not functions.
 * @param ret_failed Rules that are broken.
 * @return 0, or -1: FAILURE_NOT_FOUND where the profile does not have what a rule is about,
 *	   FAILURE_NO_MEMORY.
 */
int format_budget_judge(struct format_budget *budget, const struct format_profile *base,
			const struct format_profile *profile, enum format_lines lines,
			size_t *ret_failed, struct failure *why);

/** Write the last judgement as CI servers read it. Source: the JUnit XML format as Jenkins and
 * GitLab document it. @param name What was judged. Errors of @p file are left to the caller's
 * ferror(). */
void format_budget_print_junit(const struct format_budget *budget, const char *name, FILE *file);

/** The same as a Markdown table, for pages of CI jobs. Nothing that names have takes effect there.
 */
void format_budget_print_markdown(const struct format_budget *budget, FILE *file);

/** @return Of the last judgement, in the order of the rules; before it rules alone. Borrowed until
 * the next rule or judgement. */
const struct format_verdict *format_budget_verdicts(const struct format_budget *budget,
						    size_t *ret_count);

#endif
