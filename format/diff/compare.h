/* SPDX-License-Identifier: MIT */
/* Which differences of two profiles are significant? */
#ifndef FORMAT_DIFF_COMPARE_H
#define FORMAT_DIFF_COMPARE_H

#include "format/report.h"
#include "format/report/call_tree.h"

/*
 * Two profiles side by side, and whether their differences are significant.
 *
 * A sample is taken for a draw: of n samples, k had the function. Shares have the exact interval,
 * in which the true one is whatever n and k are (C. J. Clopper, E. S. Pearson 1934). The interval
 * of a difference of two shares is made of theirs, which holds about as well (G. Y. Zou, A. Donner
 * 2008). As all functions are looked at, each interval is so wide that all of them together hold
 * with COMPARE_CONFIDENCE (Bonferroni). Samples that are alike because they were taken close to
 * each other count for less, as far as their order tells (format/diff/effective_samples.h). Of
 * phases that last long that is not known: record for many of them.
 */
#define COMPARE_CONFIDENCE 0.99

/** [low, high] holds the true value. In shares, from -1 to 1. */
struct compare_range {
	double low, value, high;
};

/** One function, or one line of one, in both profiles: [0] the base, [1] the new one. Of equal
 * names all kinds together, as not all forms of profiles tell these. */
struct compare_row {
	const char *text; /**< As call_tree_label's; borrowed from the folds. */
	enum format_kind kind;
	uint64_t self[2], total[2];
	struct compare_range self_change,
		total_change; /**< Ends: once compare_judge() has set them. */
};

struct compare {
	struct call_tree trees[2];
	struct compare_row *rows; /**< The largest change first. */
	uint32_t count;
	uint64_t samples[2];
	double effective[2]; /**< Of effective_samples(). */
};

/** @param lines LINE or FUNCTION. */
int compare_init(struct compare *compare, const struct format_profile *base,
		 const struct format_profile *new, enum format_lines lines, struct failure *why);
void compare_deinit(struct compare *compare);

/** Set the ranges of all changes, so that all together hold. */
int compare_judge(struct compare *compare, struct failure *why);

/** Whether a change is more than chance. */
bool compare_is_certain(struct compare_range change);

/** What may lie beyond each end of each of @p count intervals that hold together. */
double compare_tail(uint32_t count);

/** Of a share: @p part of @p whole samples. Nothing is known without samples: [0, 1].
 *  @param worth As many samples tell as much as one: of effective_samples().
 *  @param tail From compare_tail(). */
struct compare_range compare_share(uint64_t part, uint64_t whole, double effective, double tail);

/** Of the difference of two shares. */
struct compare_range compare_difference(struct compare_range before, struct compare_range after);

#endif
