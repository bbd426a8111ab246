/* SPDX-License-Identifier: MIT */
/* Which rows has the call tree, and which nodes are folded? */
#include "cli/top/model/top_tree.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"

void top_folds_deinit(struct top_folds *folds)
{
	free(folds->items);
	memset(folds, 0, sizeof(*folds));
}

/* Index of the first item whose key is not smaller. */
static size_t search(const struct top_folds *folds, uint64_t key)
{
	return ARRAY_SEARCH(folds->count, i, folds->items[i].key < key);
}

static const struct top_fold *find(const struct top_folds *folds, uint64_t key)
{
	size_t at = search(folds, key);

	return at < folds->count && folds->items[at].key == key ? &folds->items[at] : NULL;
}

/* Forget the older half. This is rare, so it may check all items. */
static void forget(struct top_folds *folds)
{
	uint64_t limit = folds->time > TOP_FOLDS_MAX / 2 ? folds->time - TOP_FOLDS_MAX / 2 : 0;
	size_t kept = 0;

	for (size_t i = 0; i < folds->count; i++)
		if (folds->items[i].time > limit)
			folds->items[kept++] = folds->items[i];
	folds->count = kept;
}

void top_folds_set(struct top_folds *folds, uint64_t key, bool is_open)
{
	size_t at;

	if (!folds->items)
		folds->items = calloc(TOP_FOLDS_MAX, sizeof(*folds->items));
	if (!folds->items)
		return;
	folds->time++;
	at = search(folds, key);
	if (at == folds->count || folds->items[at].key != key) {
		if (folds->count == TOP_FOLDS_MAX) {
			forget(folds);
			at = search(folds, key);
		}
		memmove(&folds->items[at + 1], &folds->items[at],
			(folds->count - at) * sizeof(*folds->items));
		folds->count++;
	}
	folds->items[at] = (struct top_fold){ .key = key, .time = folds->time, .is_open = is_open };
}

uint32_t top_tree_find(const struct format_live_tree *tree, uint64_t key)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].key == key)
			return (uint32_t)i;
	return FORMAT_LIVE_NO_NODE;
}

/* The next node in order: the first child, the next sibling, or the next sibling of an ancestor.
 * @param below Whether children count. */
static uint32_t next_node(const struct format_live_tree *tree, uint32_t node, uint32_t top,
			  bool below)
{
	if (below && tree->nodes[node].first_child != FORMAT_LIVE_NO_NODE)
		return tree->nodes[node].first_child;
	for (; node != top; node = tree->nodes[node].parent)
		if (tree->nodes[node].next != FORMAT_LIVE_NO_NODE)
			return tree->nodes[node].next;
	return FORMAT_LIVE_NO_NODE;
}

void top_folds_set_below(struct top_folds *folds, const struct format_live_tree *tree,
			 uint32_t node, bool is_open)
{
	/* More would make the list forget them again. */
	size_t left = TOP_FOLDS_MAX / 2;
	uint32_t top = node;

	if (node >= tree->count)
		return;
	for (; node != FORMAT_LIVE_NO_NODE && left; node = next_node(tree, node, top, true)) {
		if (tree->nodes[node].first_child == FORMAT_LIVE_NO_NODE)
			continue;
		top_folds_set(folds, tree->nodes[node].key, is_open);
		left--;
	}
}

/* ---- The list --------------------------------------------------------------------------- */

static uint64_t weight_of(const struct format_live_node *node, const struct top_choice *choice)
{
	return choice->window ? node->row.count.window_total : node->row.count.total;
}

static uint32_t heaviest_child(const struct format_live_tree *tree, uint32_t node,
			       const struct top_choice *choice)
{
	uint32_t heaviest = tree->nodes[node].first_child;

	for (uint32_t child = heaviest; child != FORMAT_LIVE_NO_NODE;
	     child = tree->nodes[child].next)
		if (weight_of(&tree->nodes[child], choice) >
		    weight_of(&tree->nodes[heaviest], choice))
			heaviest = child;
	return heaviest;
}

static int add_node(struct top_table *table, const struct format_live_node *node, bool is_open,
		    const struct top_choice *choice)
{
	struct top_row *row = top_table_add(table, &node->row, choice);

	if (!row)
		return -1;
	row->id = node->key;
	row->depth = node->depth;
	if (node->first_child != FORMAT_LIVE_NO_NODE)
		row->mark = is_open ? TOP_MARK_OPEN : TOP_MARK_FOLDED;
	return 0;
}

int top_tree_list(struct top_table *table, const struct format_live_tree *tree,
		  const struct top_folds *folds, const struct top_choice *choice,
		  struct failure *why)
{
	uint32_t node = tree->count ? 0 : FORMAT_LIVE_NO_NODE, heavy = node;

	if (tree->count)
		table->samples = weight_of(&tree->nodes[0], choice);
	while (node != FORMAT_LIVE_NO_NODE) {
		const struct top_fold *fold = find(folds, tree->nodes[node].key);
		bool is_heavy = node == heavy, is_open = fold ? fold->is_open : is_heavy;
		/* Do not show nodes without samples in the window, nor the nodes below them. */
		bool is_shown = node == 0 || weight_of(&tree->nodes[node], choice) > 0;

		if (is_heavy)
			heavy = heaviest_child(tree, node, choice);
		if (is_shown && add_node(table, &tree->nodes[node], is_open, choice) != 0)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a tree");
		node = next_node(tree, node, 0, is_open && is_shown);
	}
	return 0;
}
