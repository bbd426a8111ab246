/* SPDX-License-Identifier: MIT */
/* Which differences of two profiles are significant? */
#ifndef FORMAT_DIFF_COMPARE_H
#define FORMAT_DIFF_COMPARE_H

#include "format/report.h"
#include "format/report/call_tree.h"

/*
 * Two profiles side by side, and the significance of their differences.
 *
 * A sample counts as a random draw: k of n samples have the function. A share has the exact
 * interval, which contains the true share for any n and k (C. J. Clopper, E. S. Pearson 1934). The
 * interval of a difference of two shares is computed from theirs and is about as reliable (G. Y.
 * Zou, A. Donner 2008). Many functions are compared, so each interval is wide enough that all of
 * them hold together with COMPARE_CONFIDENCE (Bonferroni). Samples that are similar because they
 * are close in time count for less, if their order is known (format/diff/effective_samples.h). This
 * does not cover long phases of a program: a recording should contain many of them.
 */
#define COMPARE_CONFIDENCE 0.99

/** [low, high] contains the true value. Shares, from -1 to 1. */
struct compare_range {
	double low, value, high;
};

/** One function, or one of its lines, in both profiles: [0] the base, [1] the new profile. Kinds
 * are merged by name, because not all formats store kinds. */
struct compare_row {
	const char *text; /**< As in call_tree_label; borrowed from the call trees. */
	enum format_kind kind;
	uint64_t self[2], total[2];
	struct compare_range self_change, total_change; /**< The ends are set by compare_judge(). */
};

struct compare {
	struct call_tree trees[2];
	struct compare_row *rows; /**< Largest change first. */
	uint32_t count;
	uint64_t samples[2];
	double effective[2]; /**< As effective_samples() returns it. */
};

/** @param lines FORMAT_LINES_LINE or FORMAT_LINES_FUNCTION. */
int compare_init(struct compare *compare, const struct format_profile *base,
		 const struct format_profile *new, enum format_lines lines, struct failure *why);
void compare_deinit(struct compare *compare);

/** Set the intervals of all changes, so that all hold together. */
int compare_judge(struct compare *compare, struct failure *why);

/** Whether a change is significant. */
bool compare_is_certain(struct compare_range change);

/** @return The error probability at each end of each of @p count intervals that hold together. */
double compare_tail(uint32_t count);

/**
 * The interval of a share: @p part of @p whole samples. Without samples it is [0, 1].
 * @param effective How many samples are worth one independent sample, from effective_samples().
 * @param tail From compare_tail().
 */
struct compare_range compare_share(uint64_t part, uint64_t whole, double effective, double tail);

/** The interval of the difference of two shares. */
struct compare_range compare_difference(struct compare_range before, struct compare_range after);

#endif
