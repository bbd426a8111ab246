/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_PLAY_H
#define TESTS_LUASTATE_PLAY_H

/*
 * One thread of a fake VM with frames of all kinds, and a whole sample of it: the VM is found, the
 * stop copied, the native stack unwound, the Lua stacks walked. What that gives is compared with
 * what is true.
 */

#include "fake_vm.h"

/** Where the thread stands; the frames below are the same. */
enum play_leaf {
	PLAY_LUA,      /**< In the interpreter, in a function that C called. */
	PLAY_C,	       /**< In a C function that that one called. */
	PLAY_TRACE,    /**< In machine code of a trace that started in it. */
	PLAY_LATE,     /**< Likewise, and when the VM was found it had no trace yet. */
	PLAY_CALLBACK, /**< In the interpreter, in a function that the FFI called. */
	PLAY_LEAFS
};

enum { PLAY_FRAMES_MAX = 16, PLAY_CFRAMES_MAX = 8 };

/** A frame as it is. */
struct play_frame {
	enum luastate_kind kind;
	uint64_t address, vm_frame; /**< Of the function; of the C frame in whose run it is. */
	uint32_t line;
	const char *name; /**< NULL: no name can be known. */
	const char *chunkname;
};

struct play {
	struct fake_vm *vm;
	struct attach_registers regs;
	enum play_leaf leaf;
	uint64_t mcode;
	struct play_frame frames[PLAY_FRAMES_MAX]; /**< Leaf first. */
	size_t frame_count, vm_frame_count;
	char text[160]; /**< What was wrong. */
};

enum play_result {
	PLAY_REFUSED, /**< No VM was found. */
	PLAY_PARTIAL, /**< A C frame was not found, or the walk says itself that it is not full. */
	PLAY_RIGHT,   /**< All frames and lines are as they are. */
	PLAY_WRONG,   /**< A full chain that is not true. */
};

/** Build the thread. @param options As for fake_vm_create(). Release with play_deinit(). */
void play_init(struct play *play, const struct fake_options *options, enum play_leaf leaf);
void play_deinit(struct play *play);

/** A value for fake_options.fill: references to an object of the VM that is built so. */
uint64_t play_fill(const struct luastate_layout *layout);

/** All C frames, as one who unwinds the native stack meets them. @return whether all were found. */
bool play_find_cframes(const struct play *play, struct luastate *state,
		       const struct luastate_memory *memory, struct luastate_vm_frame *ret_cframes);

/** Take a sample with a state that knows the interpreter, and its VM if it was found before. */
enum play_result play_sample(struct play *play, struct luastate *state);

/** Find the VM, in the way that a recording does, and take a sample. */
enum play_result play_run(struct play *play);

#endif
