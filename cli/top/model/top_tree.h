/* SPDX-License-Identifier: MIT */
/* Which nodes of the call tree are unfolded, and which rows does that give? */
#ifndef CLI_TOP_MODEL_TOP_TREE_H
#define CLI_TOP_MODEL_TOP_TREE_H

#include "cli/top/model/top_table.h"

enum {
	/* Most nodes that the user has folded or unfolded; the oldest are forgotten. */
	TOP_FOLDS_MAX = 16384,
};

/** A node that the user has folded or unfolded. */
struct top_fold {
	uint64_t key;
	uint64_t time; /* when the user did so */
	bool is_open;
};

/** All zero: no such nodes. */
struct top_folds {
	struct top_fold *items; /* by key */
	size_t count;
	uint64_t time;
};

void top_folds_deinit(struct top_folds *folds);

/** Fold or unfold a node. If memory is out, nothing changes. */
void top_folds_set(struct top_folds *folds, uint64_t key, bool is_open);

/**
 * Fold or unfold a node and all nodes below it.
 * @param node Index in the tree; any other value changes nothing.
 */
void top_folds_set_below(struct top_folds *folds, const struct format_live_tree *tree,
			 uint32_t node, bool is_open);

/**
 * Fill an empty table with the visible nodes, children after their parents. Unless the user has
 * folded it, the heaviest path is open: from the root always to the child with the most samples.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int top_tree_list(struct top_table *table, const struct format_live_tree *tree,
		  const struct top_folds *folds, const struct top_choice *choice,
		  struct failure *why);

/** @return The node with a key, or FORMAT_LIVE_NO_NODE. */
uint32_t top_tree_find(const struct format_live_tree *tree, uint64_t key);

#endif
