/* SPDX-License-Identifier: MIT */

/*
 * A program without unwind entries but with frame pointers, except in fp_frameless.c. It prints
 * "ready" and then works until it is killed.
 */

#include "fp_target.h"

#include <stdio.h>
#include <stdlib.h>

volatile uint64_t fp_sink;

NOINLINE uint64_t fp_leaf(uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		seed = seed * 6364136223846793005 + 1442695040888963407;
	return seed;
}

/* Leaves before it sets anything up where the compiler finds that worth while. */
NOINLINE uint64_t fp_early(uint64_t seed)
{
	volatile uint64_t values[4];

	if (seed & 1)
		return seed + 1;
	for (int i = 0; i < 4; i++)
		values[i] = fp_leaf(seed + (uint64_t)i);
	return values[seed & 3] & ~(uint64_t)1;
}

NOINLINE uint64_t fp_pointer(uint64_t seed)
{
	return fp_leaf(seed ^ 3) + 1;
}

static uint64_t (*volatile pointer)(uint64_t seed) = fp_pointer;

NOINLINE uint64_t fp_recurse(unsigned depth, uint64_t seed)
{
	return depth ? fp_recurse(depth - 1, seed + depth) + 1 : fp_leaf(seed);
}

NOINLINE uint64_t fp_mid(uint64_t seed)
{
	seed += fp_leaf(seed);
	seed += fp_early(seed);
	seed += fp_early(seed + 1);
	seed += pointer(seed);
	seed += fp_frameless(seed);
	seed += fp_frameless_moves(seed);
	return seed + fp_recurse(5, seed);
}

static int fp_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	fp_sink += fp_leaf(*a);
	return (*a > *b) - (*a < *b);
}

NOINLINE uint64_t fp_sort(uint64_t seed)
{
	uint64_t values[6];

	for (uint64_t i = 0; i < 6; i++)
		values[i] = fp_leaf(seed + i);
	qsort(values, 6, sizeof(values[0]), fp_compare);
	return values[0];
}

NOINLINE uint64_t fp_top(uint64_t seed)
{
	seed = fp_mid(seed) + 1;
	return fp_sort(seed) + 1;
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		fp_sink += fp_top(fp_sink);
}
