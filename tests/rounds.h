/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ROUNDS_H
#define TESTS_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/** Whether the environment says that the machine is emulated (LJPROF_TEST_EMULATED): an instruction
 *  takes ten times as long. */
static inline bool test_is_emulated(void)
{
	return getenv("LJPROF_TEST_EMULATED") != NULL;
}

/** Whether the environment asks for full length (LJPROF_TEST_FULL), as scripts/verify does. */
static inline bool test_is_full(void)
{
	return getenv("LJPROF_TEST_FULL") != NULL;
}

/** How often a test does what it repeats: @p rounds, or an eighth of it in an emulated machine. */
static inline unsigned test_rounds(unsigned rounds)
{
	return test_is_emulated() ? rounds / 8 : rounds;
}

/** How often a test does what takes long: @p usual, or at full length @p full. In an emulated
 * machine an eighth of that. */
static inline unsigned test_length(unsigned usual, unsigned full)
{
	return test_is_full() || test_is_emulated() ? test_rounds(full) : usual;
}

/** How many instructions a test steps through: @p usual, or at full length @p full. A sixteenth of
 * that in an emulated machine, where a step with all that is read for it takes seventy times as
 * long. */
static inline unsigned test_steps(unsigned usual, unsigned full)
{
	return test_is_emulated() ? full / 16 : test_is_full() ? full : usual;
}

/** Bytes to the next that is damaged: @p bytes, or four times as many in an emulated machine. Odd
 *  there, so that each byte of a word has its turn. */
static inline size_t test_stride(size_t bytes)
{
	return test_is_emulated() ? (4 * bytes) | 1 : bytes;
}

#endif
