/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_STAGE_H
#define TESTS_FUZZ_STAGE_H

/* Threads of fake VMs in all situations that tests know, for walks over what is made of them. */

#include "play.h"
#include "scenes.h"

/** Situations; the first ones are the scenes, then come the plays. */
enum {
	STAGE_SCENE = 0,
	STAGE_PLAY = SCENE_COUNT,
	STAGE_TRACES = STAGE_PLAY + PLAY_LEAFS, /**< Several traces, penalties. */
	STAGE_COROUTINES,			/**< Coroutines of each status. */
	STAGE_VALUES, /**< A frame with variables, and values of all types. */
	STAGE_COUNT
};

/** Layouts of this architecture. */
unsigned stage_layout_count(void);

enum { STAGE_PLACES_MAX = 8192, STAGE_SLOTS_BLOCKS_MAX = 16 };

/** A member of a struct, or a word that leads somewhere. */
struct stage_location {
	uint64_t address;
	uint8_t width;	/**< In bytes; 0: a number of unknown width. */
	bool is_tagged; /**< A TValue. */
};

/** A thread that is stopped. All objects but strings and userdata are on the collector's list. */
struct stage {
	struct fake_vm *vm;
	struct attach_registers regs;
	struct luastate_vm_frame vm_frames[SCENE_CFRAMES_MAX]; /**< Newest first. */
	size_t vm_frame_count;

	/* What can be changed. */
	struct stage_location *links, *members;
	size_t link_count, member_count;
	const struct fake_block *stacks[STAGE_SLOTS_BLOCKS_MAX]; /**< Lua stacks. */
	size_t stack_count;
};

/** Build situation @p number under one of the layouts. Release with stage_deinit(). */
void stage_init(struct stage *stage, unsigned layout, unsigned number);
void stage_deinit(struct stage *stage);

#endif
