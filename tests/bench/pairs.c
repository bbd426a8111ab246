/* SPDX-License-Identifier: MIT */
#include "tests/bench/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Student's t for 95 %: 2.1 for 20 numbers, 3.2 for 4; within 2 % of its tables. */
static double student_t(double n)
{
	return 1.96 + 2.4 / (n - 1) + 3.6 / ((n - 1) * (n - 1));
}

static double mean_of(const double *numbers, unsigned count)
{
	double sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += numbers[i];
	return sum / count;
}

void pairs_add(struct pairs *pairs, double percent)
{
	if (pairs->count < PAIRS_MAX)
		pairs->percent[pairs->count++] = percent;
}

struct pairs_estimate pairs_estimate(const struct pairs *pairs)
{
	unsigned n = pairs->count, cut = n / 5, kept = n - 2 * cut;
	double sorted[PAIRS_MAX], mean, squares = 0;
	struct pairs_estimate result = { .plain = mean_of(pairs->percent, n) };

	memcpy(sorted, pairs->percent, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_numbers);
	result.mean = mean_of(sorted + cut, kept);
	/* Winsorized: each end is as its nearest pair that is kept. */
	for (unsigned i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	mean = mean_of(sorted, n);
	for (unsigned i = 0; i < n; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	result.half = student_t(kept) * sqrt(squares / kept / (kept - 1));
	return result;
}
