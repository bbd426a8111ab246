/* SPDX-License-Identifier: MIT */
/* Does a profile keep the rules that a project sets for it? */
#ifndef FORMAT_BUDGET_H
#define FORMAT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/report.h"

/**
 * A list of rules for a profile, and the result of checking them.
 *
 * A rule is broken if:
 *
 *	self>5%		a function itself has more than 5 % of all samples
 *	total>30%	a function with its callees has more than 30 %
 *	func:NAME>10%	the function NAME with its callees has more; NAME may contain * and ?
 *	gc>15%		the garbage collector has more
 *	compiled<80%	machine code of traces has less
 *	+2%		a function, itself or with its callees, gained more than 2 % of all
 *			samples; also self+2%, total+2%, func:NAME+2%, gc+2%, compiled-2%
 *
 * A rule counts as broken only if the whole confidence interval of the measured share is beyond the
 * bound. By chance alone, at most one judgement in a hundred reports a broken rule.
 */
struct format_budget;

/** The result of one rule. */
struct format_verdict {
	const char *rule; /**< The rule's text as the user gave it. */
	bool failed;
	bool is_unmatched; /**< Neither profile has the rule's function. */
	char *reason;	   /**< One line: what broke the rule; "" if the rule is kept. */
};

/** @return An empty list, or NULL if memory runs out. */
struct format_budget *format_budget_create(void);
void format_budget_destroy(struct format_budget *budget);

/**
 * Add a rule.
 * @param why FAILURE_INVALID if @p text is not a rule, FAILURE_LIMIT, FAILURE_NO_MEMORY.
 */
int format_budget_add(struct format_budget *budget, const char *text, struct failure *why);

/**
 * Add the rules of a file: one rule per line; # begins a comment.
 * @param why `address` is the number of the wrong line.
 */
int format_budget_read(struct format_budget *budget, FILE *file, struct failure *why);

/** Whether any rule is about changes, which need a base profile. */
bool format_budget_needs_base(const struct format_budget *budget);

/**
 * Check all rules.
 * @param base NULL if no rule needs a base.
 * @param lines FORMAT_LINES_LINE: the rules are about lines instead of functions.
 * @param ret_failed Number of broken rules.
 * @return 0, or -1: FAILURE_NOT_FOUND if the profile lacks what a rule is about, FAILURE_NO_MEMORY.
 */
int format_budget_judge(struct format_budget *budget, const struct format_profile *base,
			const struct format_profile *profile, enum format_lines lines,
			size_t *ret_failed, struct failure *why);

/**
 * Write the last judgement for CI servers. The caller checks ferror(@p file).
 * Source: the JUnit XML format as Jenkins and GitLab document it.
 * @param name Name of the judged profile.
 */
void format_budget_print_junit(const struct format_budget *budget, const char *name, FILE *file);

/** Write the last judgement as a Markdown table, for pages of CI jobs. Names are escaped: they
 * cannot add markup to the page. */
void format_budget_print_markdown(const struct format_budget *budget, FILE *file);

/** @return The results of the last judgement, in the order of the rules. Before the first
 * judgement, each entry has only its rule. Borrowed until the next rule or judgement. */
const struct format_verdict *format_budget_verdicts(const struct format_budget *budget,
						    size_t *ret_count);

#endif
