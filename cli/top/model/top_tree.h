/* SPDX-License-Identifier: MIT */
/* The call tree as a list: which of its nodes are unfolded. */
#ifndef CLI_TOP_MODEL_TOP_TREE_H
#define CLI_TOP_MODEL_TOP_TREE_H

#include "cli/top/model/top_table.h"

enum {
	/* Nodes of which the user said whether they are folded; the oldest are forgotten. */
	TOP_FOLDS_MAX = 16384,
};

/** One such node. */
struct top_fold {
	uint64_t key;
	uint64_t time; /* of the saying */
	bool is_open;
};

/** All zero: nothing was said. */
struct top_folds {
	struct top_fold *items; /* by key */
	size_t count;
	uint64_t time;
};

void top_folds_deinit(struct top_folds *folds);

/** Fold or unfold a node. Without memory nothing changes. */
void top_folds_set(struct top_folds *folds, uint64_t key, bool is_open);

/** The same for a node and all below it. @param node Index in the tree; else nothing changes. */
void top_folds_set_below(struct top_folds *folds, const struct format_live_tree *tree,
			 uint32_t node, bool is_open);

/**
 * Put the nodes that are not folded away into an empty table, children behind their parents. Where
 * the user said nothing, the heaviest path is open: from the root on, always the child with the
 * most samples.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int top_tree_list(struct top_table *table, const struct format_live_tree *tree,
		  const struct top_folds *folds, const struct top_choice *choice,
		  struct failure *why);

/** @return The node with a key, or FORMAT_LIVE_NO_NODE. */
uint32_t top_tree_find(const struct format_live_tree *tree, uint64_t key);

#endif
