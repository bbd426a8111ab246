/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

/* Changes of a thread and its VM that know the structures, and their undoing. */

#include "stage.h"

/** Where decisions come from: a fuzzer's bytes, or without them random numbers. */
struct choices {
	const uint8_t *bytes;
	size_t len;
	uint64_t random; /**< 0: none, behind the bytes all decisions are 0. */
};

/** Decisions that follow from a number. */
struct choices choices_from_seed(uint64_t seed);
/** A number below @p limit, or any for 0. */
uint64_t choose(struct choices *choices, uint64_t limit);

enum { MUTATE_MAX = 64, MUTATE_HIDES = 8, MUTATE_HIDE_MAX = 4096 };

/** Changes that were made. */
struct mutation {
	struct stage *stage; /**< Its registers and C frames are changed, too. */
	struct attach_registers regs;
	struct luastate_vm_frame vm_frames[SCENE_CFRAMES_MAX];
	struct {
		size_t offset, len;
		uint8_t bytes[8];
	} words[2 * MUTATE_MAX];
	size_t word_count;
	struct {
		size_t offset, len;
		uint8_t known[MUTATE_HIDE_MAX];
	} hides[MUTATE_HIDES];
	size_t hide_count;
};

void mutation_begin(struct mutation *mutation, struct stage *stage);
/** One change, as far as there is room for more. */
void mutation_add(struct mutation *mutation, struct choices *choices);
/** Undo all. */
void mutation_end(struct mutation *mutation);

#endif
