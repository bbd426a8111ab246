/* SPDX-License-Identifier: MIT */
/* Two profiles by the same labels. */
#include "format/diff/diff_view.h"

#include <stdlib.h>
#include <string.h>

/** Number the labels of both together; these are sorted, so that those with the same text meet.
 *  @param ids By side: the new number of each label. */
static void join_labels(struct pair *pair, uint32_t *const ids[2])
{
	const struct fold *base = &pair->folds[0], *new = &pair->folds[1];
	uint32_t i = 0, j = 0;

	while (i < base->label_count || j < new->label_count) {
		/* Kinds tell labels of one profile apart, and two are joined by text alone. */
		int order = i == base->label_count ? 1
			    : j == new->label_count
				    ? -1
				    : strcmp(base->labels[i].text, new->labels[j].text);

		pair->labels[pair->label_count] = order < 0 ? &base->labels[i] : &new->labels[j];
		if (order <= 0)
			ids[0][i++] = pair->label_count;
		if (order >= 0)
			ids[1][j++] = pair->label_count;
		pair->label_count++;
	}
}

static void number_chains(struct fold *fold, const uint32_t *ids)
{
	for (uint32_t i = 0; i < fold->chain_count; i++) {
		uint32_t *labels = fold->pool + (fold->chains[i].labels - fold->pool);

		for (uint32_t j = 0; j < fold->chains[i].len; j++)
			labels[j] = ids[labels[j]];
	}
}

static int join(struct pair *pair, struct failure *why)
{
	uint32_t *ids[2] = { 0 };
	int result = -1;

	pair->labels = calloc((size_t)pair->folds[0].label_count + pair->folds[1].label_count + 1,
			      sizeof(*pair->labels));
	for (int i = 0; i < 2; i++)
		ids[i] = calloc((size_t)pair->folds[i].label_count + 1, sizeof(*ids[i]));
	if (pair->labels && ids[0] && ids[1]) {
		join_labels(pair, ids);
		for (int i = 0; i < 2; i++)
			number_chains(&pair->folds[i], ids[i]);
		result = 0;
	} else {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "join the profiles");
	}
	free(ids[0]);
	free(ids[1]);
	return result;
}

int pair_init(struct pair *pair, const struct format_profile *base,
	      const struct format_profile *profile, enum format_lines lines,
	      const struct format_report_options *options, struct failure *why)
{
	int result;

	memset(pair, 0, sizeof(*pair));
	pair->has_base = base != NULL;
	if (base)
		result = fold_init_by_text(&pair->folds[0], base, lines, why) ||
			 fold_init_by_text(&pair->folds[1], profile, lines, why);
	else
		result = fold_init_as(&pair->folds[1], profile, lines, options, why);
	if (!result && !join(pair, why))
		return 0;
	pair_deinit(pair);
	return -1;
}

void pair_deinit(struct pair *pair)
{
	fold_deinit(&pair->folds[0]);
	fold_deinit(&pair->folds[1]);
	free(pair->labels);
	memset(pair, 0, sizeof(*pair));
}

static uint32_t shared_labels(const struct pair_chain *last, const struct fold_chain *chain)
{
	uint32_t shared = 0;

	while (shared < last->len && shared < chain->len &&
	       last->labels[shared] == chain->labels[shared])
		shared++;
	return shared;
}

static int compare_chains(const struct fold_chain *a, const struct fold_chain *b)
{
	uint32_t shorter = a->len < b->len ? a->len : b->len;

	for (uint32_t i = 0; i < shorter; i++)
		if (a->labels[i] != b->labels[i])
			return a->labels[i] < b->labels[i] ? -1 : 1;
	return a->len == b->len ? 0 : a->len < b->len ? -1 : 1;
}

bool pair_next(const struct pair *pair, struct pair_walk *walk)
{
	const struct fold_chain *chains[2], *first;
	int order;

	for (int i = 0; i < 2; i++)
		chains[i] = walk->next[i] < pair->folds[i].chain_count
				    ? &pair->folds[i].chains[walk->next[i]]
				    : NULL;
	if (!chains[0] && !chains[1])
		return false;
	order = !chains[0] ? 1 : !chains[1] ? -1 : compare_chains(chains[0], chains[1]);
	first = chains[order > 0];
	walk->chain = (struct pair_chain){
		.labels = first->labels,
		.len = first->len,
		.shared = shared_labels(&walk->chain, first),
		.counts = { order <= 0 ? chains[0]->count : 0, order >= 0 ? chains[1]->count : 0 },
	};
	walk->next[0] += order <= 0;
	walk->next[1] += order >= 0;
	return true;
}

double pair_change(const struct pair *pair, const uint64_t counts[2])
{
	double shares[2];

	for (int i = 0; i < 2; i++)
		shares[i] = pair->folds[i].samples
				    ? (double)counts[i] / (double)pair->folds[i].samples
				    : 0;
	return shares[1] - shares[0];
}
