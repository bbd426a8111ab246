/* SPDX-License-Identifier: MIT */
/* How similar are neighbouring samples? */
#include "format/diff/effective_samples.h"

#include <math.h>
#include <stdlib.h>

enum {
	BLOCK_FIRST = 16,
	/* With fewer blocks, chance decides how much they differ. */
	BLOCKS_MIN = 32,
	/* The comparison of blocks covers shorter runs. */
	RUN_MIN = 64,
};

/** Growth below this factor counts as chance. */
#define GROWTH 1.15

/** Probability, per profile, that chance makes a run that counts as one sample. */
#define RUN_CHANCE 1e-6

/** Samples of one leaf in the current block and in the previous one. */
struct leaf {
	uint32_t now, before;
	uint64_t block; /* the last block counted in `now`, from 1 */
};

struct series {
	const struct format_profile *profile;
	const struct call_tree *call_tree;
	uint32_t *leaf_of;    /* From the profile's key to the leaf's label. */
	struct leaf *leaves;  /* By label. */
	uint32_t *touched[2]; /* Labels in the current block and in the previous one. */
	uint32_t touched_count[2];
	uint64_t size, filled, number;
	double squares; /* Sum of the squared differences of neighbours. */
};

static void find_leaves(struct series *series)
{
	const struct call_tree *call_tree = series->call_tree;
	uint32_t count = intern_count(series->profile->keys);

	for (uint32_t key = 0; key < count; key++) {
		uint32_t id = call_tree->chain_of[profile_sample(series->profile, key).chain];
		const struct call_tree_chain *chain = &call_tree->chains[id];

		series->leaf_of[key] = chain->labels[chain->len - 1];
	}
}

/** Add the squared differences to the previous block, and begin the next block. */
static void end_block(struct series *series)
{
	uint32_t *before = series->touched[1];
	double squares = 0;

	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < series->touched_count[side]; i++) {
			struct leaf *leaf = &series->leaves[series->touched[side][i]];
			double difference = (double)leaf->now - leaf->before;

			/* Leaves of both blocks appear twice; add them once. */
			if (side == 0 || leaf->block != series->number)
				squares += difference * difference;
		}
	}
	if (series->number > 1)
		series->squares += squares;
	for (uint32_t i = 0; i < series->touched_count[1]; i++)
		series->leaves[before[i]].before = 0;
	for (uint32_t i = 0; i < series->touched_count[0]; i++) {
		struct leaf *leaf = &series->leaves[series->touched[0][i]];

		leaf->before = leaf->now;
		leaf->now = 0;
	}
	series->touched[1] = series->touched[0];
	series->touched[0] = before;
	series->touched_count[1] = series->touched_count[0];
	series->touched_count[0] = 0;
	series->filled = 0;
	series->number++;
}

static void add(struct series *series, uint32_t label, uint64_t count)
{
	while (count > 0) {
		struct leaf *leaf = &series->leaves[label];
		uint64_t room = series->size - series->filled;
		uint64_t part = count < room ? count : room;

		if (leaf->block != series->number)
			series->touched[0][series->touched_count[0]++] = label;
		leaf->block = series->number;
		leaf->now += (uint32_t)part;
		series->filled += part;
		count -= part;
		if (series->filled == series->size)
			end_block(series);
	}
}

/**
 * Compare blocks of @p size samples. If samples are independent, the difference of neighbours has
 * the variance 2 m p (1 - p) for each leaf, with m = @p size.
 * @param spread The sum of p (1 - p).
 * @return The measured variance relative to that.
 */
static double measure(struct series *series, uint64_t size, double spread)
{
	struct timeline_cursor cursor = { 0 };

	for (uint32_t i = 0; i < series->call_tree->label_count; i++)
		series->leaves[i] = (struct leaf){ 0 };
	series->touched_count[0] = series->touched_count[1] = 0;
	series->size = size;
	series->filled = 0;
	series->number = 1;
	series->squares = 0;
	while (timeline_next(&series->profile->timeline, &cursor))
		add(series, series->leaf_of[cursor.key], cursor.count);
	/* The last block is incomplete and does not count. */
	return series->squares / ((double)(series->number - 2) * 2 * (double)size * spread);
}

/** Sum p (1 - p) over all leaves. */
static int find_spread(const struct call_tree *call_tree, double *ret_spread, struct failure *why)
{
	struct call_tree_count *counts = call_tree_count(call_tree);
	double spread = 0;

	if (!counts)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the profiles");
	for (uint32_t i = 0; i < call_tree->label_count && call_tree->samples > 0; i++) {
		double share = (double)counts[i].self / (double)call_tree->samples;

		spread += share * (1 - share);
	}
	free(counts);
	*ret_spread = spread;
	return 0;
}

/** Double the block size until the result stops growing. */
static double find_effective(struct series *series, double spread)
{
	uint64_t most = series->profile->timeline.count / BLOCKS_MIN;
	double effective = 1;

	for (uint64_t size = BLOCK_FIRST; size <= most && size <= UINT32_MAX; size *= 2) {
		double measured = measure(series, size, spread);

		if (size > BLOCK_FIRST && measured < GROWTH * effective)
			return measured > effective ? measured : effective;
		effective = measured > 1 ? measured : 1;
	}
	return effective;
}

/** A long run counts as one sample. @return What it adds to the result. */
static double excess_of(const struct format_profile *profile, uint32_t key, uint64_t len)
{
	double n = (double)profile->timeline.count, count = (double)len;
	double share = (double)profile->key_counts[key] / (double)profile->samples;

	if (len <= RUN_MIN || count * log(share) + log(n) > log(RUN_CHANCE))
		return 0;
	return count * count / n;
}

/** Find runs of samples with the same chain that are too long for chance. The comparison of
 * neighbours hardly sees an event that happens only once or twice. */
static double find_runs(const struct format_profile *profile)
{
	struct timeline_cursor cursor = { 0 };
	uint64_t len = 0;
	uint32_t key = 0;
	double excess = 0;

	while (timeline_next(&profile->timeline, &cursor)) {
		if (cursor.key != key) {
			excess += len ? excess_of(profile, key, len) : 0;
			len = 0;
		}
		key = cursor.key;
		len += cursor.count;
	}
	return excess + (len ? excess_of(profile, key, len) : 0);
}

static int series_init(struct series *series, const struct format_profile *profile,
		       const struct call_tree *call_tree, struct failure *why)
{
	size_t labels = (size_t)call_tree->label_count + 1;
	size_t keys = (size_t)intern_count(profile->keys) + 1;

	*series = (struct series){ .profile = profile, .call_tree = call_tree };
	series->leaf_of = calloc(keys, sizeof(*series->leaf_of));
	series->leaves = calloc(labels, sizeof(*series->leaves));
	for (int side = 0; side < 2; side++)
		series->touched[side] = calloc(labels, sizeof(*series->touched[side]));
	if (!series->leaf_of || !series->leaves || !series->touched[0] || !series->touched[1])
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the profiles");
	find_leaves(series);
	return 0;
}

static void series_deinit(struct series *series)
{
	free(series->leaf_of);
	free(series->leaves);
	free(series->touched[0]);
	free(series->touched[1]);
}

int effective_samples(const struct format_profile *profile, const struct call_tree *call_tree,
		      double *ret_effective, struct failure *why)
{
	struct series series;
	double spread = 0;
	int result;

	if (find_spread(call_tree, &spread, why))
		return -1;
	/* If all samples are equal, nothing varies. */
	if (!profile->timeline.is_kept || profile->timeline.is_summed || spread < 1e-9) {
		*ret_effective = 1;
		return 0;
	}
	result = series_init(&series, profile, call_tree, why);
	if (result == 0)
		*ret_effective = fmax(find_effective(&series, spread), 1 + find_runs(profile));
	series_deinit(&series);
	return result;
}
