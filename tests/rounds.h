/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ROUNDS_H
#define TESTS_ROUNDS_H

#include <stdlib.h>

/** How often a test does what it repeats: @p rounds, or an eighth of it where the environment says
 *  that the machine is emulated (LJPROF_TEST_EMULATED): an instruction takes ten times as long. */
static inline unsigned test_rounds(unsigned rounds)
{
	return getenv("LJPROF_TEST_EMULATED") ? rounds / 8 : rounds;
}

#endif
