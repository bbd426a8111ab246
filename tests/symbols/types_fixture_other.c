/* SPDX-License-Identifier: MIT */
#include "types_fixture.h"

/* A unit that knows struct fixture_later by its name only. */

struct fixture_twice {
	long one, two;
};

struct fixture_twice fixture_twice_of_other;

struct fixture_later *fixture_get(const struct fixture_state *state)
{
	return state->later;
}
