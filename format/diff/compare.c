/* SPDX-License-Identifier: MIT */
/* What are the shares of two profiles, with exact intervals? */
#include "format/diff/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/effective_samples.h"

/* ---- Intervals -------------------------------------------------------------------------- */

bool compare_is_certain(struct compare_range change)
{
	return change.low > 0 || change.high < 0;
}

double compare_tail(uint32_t count)
{
	return (1 - COMPARE_CONFIDENCE) / 2 / (count ? count : 1);
}

/**
 * Continued fraction of the incomplete beta function, by Lentz's method.
 * Source: NIST Digital Library of Mathematical Functions, 8.17.22.
 */
static double beta_fraction(double x, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), fraction;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	fraction = d;
	for (int m = 1; m <= 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double before = fraction;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		fraction *= c * d;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		fraction *= c * d;
		if (fabs(fraction - before) <= 1e-13 * fabs(fraction))
			break;
	}
	return fraction;
}

/** The regularised incomplete beta function: the probability below @p x. */
static double beta_below(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

/** The point below which the probability is @p below. */
static double beta_quantile(double below, double a, double b)
{
	/* All requested tails are within this distance of the mean, even in the most skewed
	 * distributions. */
	double n = a + b, mean = a / n, reach = 12 * sqrt(mean * (1 - mean) / n) + 60 / n;
	double low = fmax(mean - reach, 0), high = fmin(mean + reach, 1);

	for (int i = 0; i < 200 && high - low > 1e-10 * high; i++) {
		double middle = (low + high) / 2;

		if (beta_below(middle, a, b) < below)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

struct compare_range compare_share(uint64_t part, uint64_t whole, double effective, double tail)
{
	double k = (double)part / effective, n = (double)whole / effective;
	struct compare_range range = { 0, 0, 1 };

	if (whole == 0)
		return range;
	range.value = k / n;
	/* The upper bound is 1 less the share of all others: small tails are exact only at the
	 * lower end. */
	if (part > 0)
		range.low = beta_quantile(tail, k, n - k + 1);
	if (part < whole)
		range.high = 1 - beta_quantile(tail, n - k, k + 1);
	return range;
}

struct compare_range compare_difference(struct compare_range before, struct compare_range after)
{
	double change = after.value - before.value;

	return (struct compare_range){
		change - hypot(after.value - after.low, before.high - before.value),
		change,
		change + hypot(after.high - after.value, before.value - before.low),
	};
}

/* ---- Rows ------------------------------------------------------------------------------- */

static void set_side(struct compare_row *row, const struct call_tree_label *label,
		     const struct call_tree_count *count, int side)
{
	row->text = label->text;
	row->kind = label->kind;
	row->self[side] = count->self;
	row->total[side] = count->total;
}

/** Labels of both profiles are sorted, so equal texts meet. */
static void join(struct compare *compare, struct call_tree_count *const counts[2])
{
	const struct call_tree *base = &compare->trees[0], *new = &compare->trees[1];
	uint32_t i = 0, j = 0;

	while (i < base->label_count || j < new->label_count) {
		struct compare_row *row = &compare->rows[compare->count++];
		int order = call_tree_order(base, i, new, j);

		if (order <= 0) {
			set_side(row, &base->labels[i], &counts[0][i], 0);
			i++;
		}
		if (order >= 0) {
			set_side(row, &new->labels[j], &counts[1][j], 1);
			j++;
		}
	}
}

static void set_values(struct compare *compare)
{
	for (uint32_t i = 0; i < compare->count; i++) {
		struct compare_row *row = &compare->rows[i];
		double wholes[2];

		for (int side = 0; side < 2; side++)
			wholes[side] = compare->samples[side] ? (double)compare->samples[side] : 1;
		row->self_change.value =
			(double)row->self[1] / wholes[1] - (double)row->self[0] / wholes[0];
		row->total_change.value =
			(double)row->total[1] / wholes[1] - (double)row->total[0] / wholes[0];
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct compare_row *a = left, *b = right;
	double self_a = fabs(a->self_change.value), self_b = fabs(b->self_change.value);
	double total_a = fabs(a->total_change.value), total_b = fabs(b->total_change.value);

	if (self_a != self_b)
		return self_a > self_b ? -1 : 1;
	if (total_a != total_b)
		return total_a > total_b ? -1 : 1;
	if (a->self[1] != b->self[1])
		return a->self[1] > b->self[1] ? -1 : 1;
	return strcmp(a->text, b->text);
}

/** Cache of one profile's intervals. Most functions have few samples, and many have the same
 * number. */
struct shares {
	uint64_t whole;
	double effective, tail;
	struct {
		bool is_known;
		struct compare_range range;
	} few[1024];
};

static struct compare_range share_of(struct shares *shares, uint64_t part)
{
	if (part >= sizeof(shares->few) / sizeof(shares->few[0]))
		return compare_share(part, shares->whole, shares->effective, shares->tail);
	if (!shares->few[part].is_known) {
		shares->few[part].range =
			compare_share(part, shares->whole, shares->effective, shares->tail);
		shares->few[part].is_known = true;
	}
	return shares->few[part].range;
}

int compare_judge(struct compare *compare, struct failure *why)
{
	struct shares *sides = calloc(2, sizeof(*sides));

	if (!sides)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the profiles");
	for (int side = 0; side < 2; side++) {
		sides[side].whole = compare->samples[side];
		sides[side].effective = compare->effective[side];
		sides[side].tail = compare_tail(2 * compare->count);
	}
	for (uint32_t i = 0; i < compare->count; i++) {
		struct compare_row *row = &compare->rows[i];

		row->self_change = compare_difference(share_of(&sides[0], row->self[0]),
						      share_of(&sides[1], row->self[1]));
		row->total_change = compare_difference(share_of(&sides[0], row->total[0]),
						       share_of(&sides[1], row->total[1]));
	}
	free(sides);
	return 0;
}

int compare_init(struct compare *compare, const struct format_profile *base,
		 const struct format_profile *new, enum format_lines lines, struct failure *why)
{
	struct call_tree_count *counts[2] = { NULL };
	int result = -1;

	memset(compare, 0, sizeof(*compare));
	if (call_tree_init_by_text(&compare->trees[0], base, lines, why) == 0 &&
	    call_tree_init_by_text(&compare->trees[1], new, lines, why) == 0 &&
	    effective_samples(base, &compare->trees[0], &compare->effective[0], why) == 0 &&
	    effective_samples(new, &compare->trees[1], &compare->effective[1], why) == 0) {
		counts[0] = call_tree_count(&compare->trees[0]);
		counts[1] = call_tree_count(&compare->trees[1]);
		compare->rows = calloc((size_t)compare->trees[0].label_count +
					       compare->trees[1].label_count + 1,
				       sizeof(*compare->rows));
		if (counts[0] && counts[1] && compare->rows)
			result = 0;
		else
			failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the profiles");
	}
	if (result == 0) {
		compare->samples[0] = compare->trees[0].samples;
		compare->samples[1] = compare->trees[1].samples;
		join(compare, counts);
		set_values(compare);
		qsort(compare->rows, compare->count, sizeof(*compare->rows), compare_rows);
	}
	free(counts[0]);
	free(counts[1]);
	if (result)
		compare_deinit(compare);
	return result;
}

void compare_deinit(struct compare *compare)
{
	call_tree_deinit(&compare->trees[0]);
	call_tree_deinit(&compare->trees[1]);
	free(compare->rows);
	memset(compare, 0, sizeof(*compare));
}
