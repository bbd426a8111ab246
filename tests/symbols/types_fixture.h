/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SYMBOLS_TYPES_FIXTURE_H
#define TESTS_SYMBOLS_TYPES_FIXTURE_H

/* Structures of every shape that types.c tells apart. */

#include <stdint.h>

struct fixture_later; /* complete in one unit only */

union fixture_node {
	uint64_t word;
	struct {
		uint32_t low, high;
	};
	struct {
		uint8_t bytes[8];
	} parts;
};

typedef struct fixture_state {
	uint8_t kind, marked;
	struct fixture_later *later;
	struct {
		uint64_t total;
		uint8_t phase;
		struct {
			const uint16_t *next;
			uint32_t grid[3][5];
		} deep;
	} gc;
	union {
		uint32_t number;
		float real;
	};
	union fixture_node node;
	unsigned flag : 3;
	unsigned rest : 29;
	volatile const int32_t state;
	void (*call)(int);
	char tail[];
} fixture_state_t;

/* Only the name says what it is. */
typedef struct {
	int32_t first;
	fixture_state_t *state;
} fixture_unnamed;

typedef fixture_unnamed fixture_again;

enum fixture_phase { FIXTURE_PAUSE, FIXTURE_SWEEP = 7, FIXTURE_NEGATIVE = -3 };
enum { FIXTURE_LIMIT = 250 };

#endif
