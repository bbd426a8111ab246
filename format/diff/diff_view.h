/* SPDX-License-Identifier: MIT */
/* How does a profile look beside its base? */
#ifndef FORMAT_DIFF_DIFF_VIEW_H
#define FORMAT_DIFF_DIFF_VIEW_H

#include "format/report.h"
#include "format/report/call_tree.h"

/** A profile as reports show it, alone or beside its base: one list of labels and one of chains
 * for both. */
struct diff_view {
	struct call_tree trees[2]; /**< [0] the base, empty if there is none; [1] the profile. */
	/** Labels of both by text; chains of both refer to them. Borrowed from the call trees. */
	const struct call_tree_label **labels;
	uint32_t label_count;
	bool has_base;
};

/**
 * Initialise a view.
 * @param base NULL: none. With a base, functions of equal text are one, because not all formats
 * store kinds, and frames have no annotations.
 * @param options Annotations and roots.
 */
int diff_view_init(struct diff_view *diff_view, const struct format_profile *base,
		   const struct format_profile *profile, enum format_lines lines,
		   const struct format_report_options *options, struct failure *why);
void diff_view_deinit(struct diff_view *diff_view);

/** A chain of one profile or of both. No chain is a prefix of the previous one. */
struct diff_view_chain {
	const uint32_t *labels; /**< Root first. */
	uint32_t len;
	uint32_t shared; /**< Leading labels that equal those of the previous chain; less than len.
			  */
	uint64_t counts[2];
};

/**
 * Get the next chain in the order of labels.
 * @param walk All zero at first.
 * @return false at the end.
 */
struct diff_view_walk {
	uint32_t next[2];
	struct diff_view_chain chain;
};
bool diff_view_next(const struct diff_view *diff_view, struct diff_view_walk *walk);

/** Change of a share of all samples, from -1 to 1. @param counts As in a chain. */
double diff_view_change(const struct diff_view *diff_view, const uint64_t counts[2]);

#endif
