/* SPDX-License-Identifier: MIT */
/* A profile beside the one that it is compared with. */
#ifndef FORMAT_DIFF_DIFF_VIEW_H
#define FORMAT_DIFF_DIFF_VIEW_H

#include "format/report.h"
#include "format/report/call_tree.h"

/** A profile as reports show it, alone or beside the one that it is compared with: labels and
 * chains of both are one list each. */
struct diff_view {
	struct call_tree trees[2]; /**< [0] the base, empty where there is none; [1] the profile. */
	/** Those of both by text; the chains of both refer to these. Borrowed from the folds. */
	const struct call_tree_label **labels;
	uint32_t label_count;
	bool has_base;
};

/** @param base NULL: none. With one, functions of equal text are one, as not all forms of profiles
 * tell kinds, and nothing is annotated.
 *  @param options Marks of frames, and roots. */
int diff_view_init(struct diff_view *diff_view, const struct format_profile *base,
		   const struct format_profile *profile, enum format_lines lines,
		   const struct format_report_options *options, struct failure *why);
void diff_view_deinit(struct diff_view *diff_view);

/** A chain that one of them has, or both. No chain is the beginning of the one before. */
struct diff_view_chain {
	const uint32_t *labels; /**< Root first. */
	uint32_t len;
	uint32_t shared; /**< Labels that are those of the chain before; less than len. */
	uint64_t counts[2];
};

/** The next one in the order of labels. @param walk All zero at first, then the one before.
 *  @return false: there is none. */
struct diff_view_walk {
	uint32_t next[2];
	struct diff_view_chain chain;
};
bool diff_view_next(const struct diff_view *diff_view, struct diff_view_walk *walk);

/** Change of a share of all samples, from -1 to 1. @param counts As in a chain. */
double diff_view_change(const struct diff_view *diff_view, const uint64_t counts[2]);

#endif
