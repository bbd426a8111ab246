/* SPDX-License-Identifier: MIT */

/* Functions without frame pointers: the register is their caller's. */

#include "fp_target.h"

NOINLINE uint64_t fp_frameless(uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		seed = (seed << 5) - seed + 7;
	return seed;
}

NOINLINE uint64_t fp_frameless_moves(uint64_t seed)
{
	volatile uint64_t values[32];

	for (unsigned i = 0; i < 32; i++)
		values[i] = seed + i;
	return fp_leaf(values[seed & 31]) + 1;
}
