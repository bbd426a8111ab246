/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_PLAN_STOP_H
#define TESTS_LUASTATE_PLAN_STOP_H

/* A stop of a fake VM: an image is filled round by round, as the planner asks. */

#include "sample.h"

#include "attach/image/image_internal.h"

enum {
	STOP_ROUNDS_MAX = FAKE_ROUNDS_MAX,
};

struct stop {
	struct sample *sample;
	struct attach_image *image, *after;
	struct luastate_prediction prediction;
	struct luastate_plan_context context;
	unsigned rounds;
	size_t ranges[STOP_ROUNDS_MAX]; /* number of ranges after each round */
};

/** main calls work; the thread is in the interpreter. */
struct stop_scene {
	uint64_t main, work, work_proto, main_proto;
	uint64_t co; /* of stop_resume() */
};

struct stop_scene stop_make_scene(struct sample *sample);

/** The thread runs a coroutine on top, with work. @return It. */
uint64_t stop_resume(struct sample *sample, const struct stop_scene *scene);

void stop_begin(struct stop *stop, struct sample *sample);
void stop_end(struct stop *stop);

/** @return Bytes that the stop asked for. */
size_t stop_capture(struct stop *stop);

/** Whether the stop has copied this. */
bool stop_has(const struct stop *stop, uint64_t address, size_t len);

/** Whether any round asked for this, read or not. */
bool stop_asked(const struct stop *stop, uint64_t address);

/** Read what is read right after the stop. */
void stop_ask_again(struct stop *stop);

/** Decode what the stop copied, and what lives longer from the process. */
void stop_decode(struct stop *stop);

/** In which round an address was asked for first; STOP_ROUNDS_MAX: in none. */
unsigned stop_round_of(const struct stop *stop, uint64_t address);

/** Update the prediction by the sample's C frames. */
void stop_learn(struct stop *stop);

/** Where a coroutine's Lua stack begins. */
uint64_t stop_stack_of(const struct fake_vm *vm, uint64_t L);

/** The stop has a coroutine, and its Lua stack up to its base. */
void stop_expect_stack(const struct stop *stop, uint64_t L);

#endif
