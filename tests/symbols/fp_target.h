/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SYMBOLS_FP_TARGET_H
#define TESTS_SYMBOLS_FP_TARGET_H

#include <stdint.h>

#define NOINLINE __attribute__((noinline))

extern volatile uint64_t fp_sink;

uint64_t fp_leaf(uint64_t seed);
uint64_t fp_early(uint64_t seed);
uint64_t fp_pointer(uint64_t seed);
uint64_t fp_recurse(unsigned depth, uint64_t seed);
uint64_t fp_mid(uint64_t seed);
uint64_t fp_sort(uint64_t seed);
uint64_t fp_top(uint64_t seed);

/* In fp_frameless.c. */
uint64_t fp_frameless(uint64_t seed);
uint64_t fp_frameless_moves(uint64_t seed);

#endif
