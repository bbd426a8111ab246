/* SPDX-License-Identifier: MIT */
#include "format/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Intervals ---------------------------------------------------------------------------- */

bool compare_is_certain(struct compare_range change)
{
	return change.low > 0 || change.high < 0;
}

/** @param outside How much of a normal distribution lies beyond both ends. */
static double width_of(double outside)
{
	double low = 0, high = 40;

	/* Where the normal distribution leaves so much outside; it falls steadily. */
	while (high - low > 1e-9) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) > outside)
			low = middle;
		else
			high = middle;
	}
	return high;
}

double compare_width(uint32_t count)
{
	return width_of((1 - COMPARE_CONFIDENCE) / (count ? count : 1));
}

double compare_width_of_ends(uint32_t count)
{
	return width_of(2 * (1 - COMPARE_CONFIDENCE) / (count ? count : 1));
}

struct compare_range compare_share(uint64_t part, uint64_t whole, double z)
{
	double n = (double)whole, share, centre, half;

	if (whole == 0)
		return (struct compare_range){ 0, 0, 1 };
	share = (double)part / n;
	centre = (share + z * z / (2 * n)) / (1 + z * z / n);
	half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n);
	return (struct compare_range){ fmax(centre - half, 0), share, fmin(centre + half, 1) };
}

struct compare_range compare_change(const uint64_t parts[2], const uint64_t wholes[2], double z)
{
	struct compare_range before = compare_share(parts[0], wholes[0], z);
	struct compare_range after = compare_share(parts[1], wholes[1], z);
	double change = after.value - before.value;

	if (wholes[0] == 0 || wholes[1] == 0)
		return (struct compare_range){ -1, 0, 1 };
	return (struct compare_range){
		change - hypot(after.value - after.low, before.high - before.value),
		change,
		change + hypot(after.high - after.value, before.value - before.low),
	};
}

/* ---- Rows --------------------------------------------------------------------------------- */

static int compare_labels(const struct fold_label *a, const struct fold_label *b)
{
	int order = strcmp(a->text, b->text);

	return order ? order : (int)a->kind - (int)b->kind;
}

static void set_side(struct compare_row *row, const struct fold_label *label,
		     const struct fold_count *count, int side)
{
	row->text = label->text;
	row->kind = label->kind;
	row->self[side] = count->self;
	row->total[side] = count->total;
}

/** Labels of both are sorted: those with the same text meet. */
static void join(struct compare *compare, struct fold_count *const counts[2])
{
	const struct fold *base = &compare->folds[0], *new = &compare->folds[1];
	uint32_t i = 0, j = 0;

	while (i < base->label_count || j < new->label_count) {
		struct compare_row *row = &compare->rows[compare->count++];
		int order = i == base->label_count ? 1
			    : j == new->label_count
				    ? -1
				    : compare_labels(&base->labels[i], &new->labels[j]);

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

static double size_of(const struct compare_row *row)
{
	return fmax(fabs(row->self_change.value), fabs(row->total_change.value));
}

static int compare_rows(const void *left, const void *right)
{
	const struct compare_row *a = left, *b = right;
	double self_a = fabs(a->self_change.value), self_b = fabs(b->self_change.value);

	if (self_a != self_b)
		return self_a > self_b ? -1 : 1;
	if (size_of(a) != size_of(b))
		return size_of(a) > size_of(b) ? -1 : 1;
	if (a->self[1] != b->self[1])
		return a->self[1] > b->self[1] ? -1 : 1;
	return strcmp(a->text, b->text);
}

static void judge(struct compare *compare)
{
	/* A share and a change, itself and in all; and two states of the VM. */
	compare->z = compare_width(4 * compare->count + 4);
	for (uint32_t i = 0; i < compare->count; i++) {
		struct compare_row *row = &compare->rows[i];

		row->self_change = compare_change(row->self, compare->samples, compare->z);
		row->total_change = compare_change(row->total, compare->samples, compare->z);
	}
	qsort(compare->rows, compare->count, sizeof(*compare->rows), compare_rows);
}

int compare_init(struct compare *compare, const struct format_profile *base,
		 const struct format_profile *new, enum format_lines lines, struct failure *why)
{
	struct fold_count *counts[2] = { NULL };
	int result = -1;

	memset(compare, 0, sizeof(*compare));
	if (fold_init(&compare->folds[0], base, lines, FORMAT_ANNOTATE_NONE, why) == 0 &&
	    fold_init(&compare->folds[1], new, lines, FORMAT_ANNOTATE_NONE, why) == 0) {
		counts[0] = fold_count(&compare->folds[0]);
		counts[1] = fold_count(&compare->folds[1]);
		compare->rows = calloc((size_t)compare->folds[0].label_count +
					       compare->folds[1].label_count + 1,
				       sizeof(*compare->rows));
		if (counts[0] && counts[1] && compare->rows)
			result = 0;
		else
			failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compare the profiles");
	}
	if (result == 0) {
		compare->samples[0] = compare->folds[0].samples;
		compare->samples[1] = compare->folds[1].samples;
		join(compare, counts);
		judge(compare);
	}
	free(counts[0]);
	free(counts[1]);
	if (result)
		compare_deinit(compare);
	return result;
}

void compare_deinit(struct compare *compare)
{
	fold_deinit(&compare->folds[0]);
	fold_deinit(&compare->folds[1]);
	free(compare->rows);
	memset(compare, 0, sizeof(*compare));
}
