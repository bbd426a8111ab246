/* SPDX-License-Identifier: MIT */
#include "tests/bench/pairs.h"

#include <assert.h>
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

/* The part of its speed that a program loses, in percent. */
static double lost_percent(double mean)
{
	return -100 * expm1(-mean);
}

double pairs_rate(struct pairs_work work)
{
	return ((double)work.units + 0.5) * 1e9 / (double)work.ns;
}

void pairs_add(struct pairs *pairs, struct pairs_work with, struct pairs_work without)
{
	if (pairs->count < PAIRS_MAX)
		pairs->logs[pairs->count++] = log(pairs_rate(without) / pairs_rate(with));
}

struct pairs_estimate pairs_estimate(const struct pairs *pairs)
{
	/* The term above is not that of three numbers. */
	unsigned n = pairs->count, cut = n < 6 ? 0 : n / 5, kept = n - 2 * cut;
	double sorted[PAIRS_MAX], mean, trimmed, half, squares = 0;

	assert(n >= PAIRS_MIN && n <= PAIRS_MAX);
	memcpy(sorted, pairs->logs, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_numbers);
	trimmed = mean_of(sorted + cut, kept);
	/* Winsorized: each end is as its nearest pair that is kept. */
	for (unsigned i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	mean = mean_of(sorted, n);
	for (unsigned i = 0; i < n; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	half = student_t(kept) * sqrt(squares / kept / (kept - 1));
	return (struct pairs_estimate){
		.mean = lost_percent(trimmed),
		.lower = lost_percent(trimmed - half),
		.upper = lost_percent(trimmed + half),
		.plain = lost_percent(mean_of(pairs->logs, n)),
	};
}
