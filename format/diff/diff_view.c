/* SPDX-License-Identifier: MIT */
/* How do two profiles share labels? */
#include "format/diff/diff_view.h"

#include <stdlib.h>
#include <string.h>

/**
 * Number the labels of both profiles together. Both lists are sorted, so equal texts meet.
 * @param ids By side: the new number of each label.
 */
static void join_labels(struct diff_view *diff_view, uint32_t *const ids[2])
{
	const struct call_tree *base = &diff_view->trees[0], *new = &diff_view->trees[1];
	uint32_t i = 0, j = 0;

	while (i < base->label_count || j < new->label_count) {
		int order = call_tree_order(base, i, new, j);

		diff_view->labels[diff_view->label_count] =
			order < 0 ? &base->labels[i] : &new->labels[j];
		if (order <= 0)
			ids[0][i++] = diff_view->label_count;
		if (order >= 0)
			ids[1][j++] = diff_view->label_count;
		diff_view->label_count++;
	}
}

static void number_chains(struct call_tree *call_tree, const uint32_t *ids)
{
	for (uint32_t i = 0; i < call_tree->chain_count; i++) {
		uint32_t *labels =
			call_tree->pool + (call_tree->chains[i].labels - call_tree->pool);

		for (uint32_t j = 0; j < call_tree->chains[i].len; j++)
			labels[j] = ids[labels[j]];
	}
}

static int join(struct diff_view *diff_view, struct failure *why)
{
	uint32_t *ids[2] = { 0 };
	int result = -1;

	diff_view->labels = calloc((size_t)diff_view->trees[0].label_count +
					   diff_view->trees[1].label_count + 1,
				   sizeof(*diff_view->labels));
	for (int i = 0; i < 2; i++)
		ids[i] = calloc((size_t)diff_view->trees[i].label_count + 1, sizeof(*ids[i]));
	if (diff_view->labels && ids[0] && ids[1]) {
		join_labels(diff_view, ids);
		for (int i = 0; i < 2; i++)
			number_chains(&diff_view->trees[i], ids[i]);
		result = 0;
	} else {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "join the profiles");
	}
	free(ids[0]);
	free(ids[1]);
	return result;
}

int diff_view_init(struct diff_view *diff_view, const struct format_profile *base,
		   const struct format_profile *profile, enum format_lines lines,
		   const struct format_report_options *options, struct failure *why)
{
	int result;

	memset(diff_view, 0, sizeof(*diff_view));
	diff_view->has_base = base != NULL;
	if (base)
		result = call_tree_init_by_text(&diff_view->trees[0], base, lines, why) ||
			 call_tree_init_by_text(&diff_view->trees[1], profile, lines, why);
	else
		result = call_tree_init_as(&diff_view->trees[1], profile, lines, options, why);
	if (!result && !join(diff_view, why))
		return 0;
	diff_view_deinit(diff_view);
	return -1;
}

void diff_view_deinit(struct diff_view *diff_view)
{
	call_tree_deinit(&diff_view->trees[0]);
	call_tree_deinit(&diff_view->trees[1]);
	free(diff_view->labels);
	memset(diff_view, 0, sizeof(*diff_view));
}

static uint32_t shared_labels(const struct diff_view_chain *last,
			      const struct call_tree_chain *chain)
{
	uint32_t shared = 0;

	while (shared < last->len && shared < chain->len &&
	       last->labels[shared] == chain->labels[shared])
		shared++;
	return shared;
}

static int compare_chains(const struct call_tree_chain *a, const struct call_tree_chain *b)
{
	uint32_t shorter = a->len < b->len ? a->len : b->len;

	for (uint32_t i = 0; i < shorter; i++)
		if (a->labels[i] != b->labels[i])
			return a->labels[i] < b->labels[i] ? -1 : 1;
	return a->len == b->len ? 0 : a->len < b->len ? -1 : 1;
}

bool diff_view_next(const struct diff_view *diff_view, struct diff_view_walk *walk)
{
	const struct call_tree_chain *chains[2], *first;
	int order;

	for (int i = 0; i < 2; i++)
		chains[i] = walk->next[i] < diff_view->trees[i].chain_count
				    ? &diff_view->trees[i].chains[walk->next[i]]
				    : NULL;
	if (!chains[0] && !chains[1])
		return false;
	order = !chains[0] ? 1 : !chains[1] ? -1 : compare_chains(chains[0], chains[1]);
	first = chains[order > 0];
	walk->chain = (struct diff_view_chain){
		.labels = first->labels,
		.len = first->len,
		.shared = shared_labels(&walk->chain, first),
		.counts = { order <= 0 ? chains[0]->count : 0, order >= 0 ? chains[1]->count : 0 },
	};
	walk->next[0] += order <= 0;
	walk->next[1] += order >= 0;
	return true;
}

double diff_view_change(const struct diff_view *diff_view, const uint64_t counts[2])
{
	double shares[2];

	for (int i = 0; i < 2; i++)
		shares[i] = diff_view->trees[i].samples
				    ? (double)counts[i] / (double)diff_view->trees[i].samples
				    : 0;
	return shares[1] - shares[0];
}
