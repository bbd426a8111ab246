/* SPDX-License-Identifier: MIT */
#include "types_fixture.h"

/* The unit in which everything is complete. */

struct fixture_later {
	uint8_t header[24];
	uint16_t value;
};

/* Another unit has another structure of this name. */
struct fixture_twice {
	int one;
};

/* A unit without the anchor has one, too. */
struct fixture_foreign {
	int own;
};

struct fixture_state fixture_state;
struct fixture_later fixture_later;
struct fixture_twice fixture_twice;
struct fixture_foreign fixture_foreign;
fixture_unnamed fixture_value;
fixture_again fixture_value_again;
enum fixture_phase fixture_phase;

int fixture_types(int value)
{
	return fixture_later.value + value + FIXTURE_LIMIT;
}
