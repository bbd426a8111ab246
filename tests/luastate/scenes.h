/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_SCENES_H
#define TESTS_LUASTATE_SCENES_H

/* Small VMs in typical situations, for fuzzing. */

#include "fake_vm.h"

enum {
	SCENE_COUNT = 8,
	SCENE_CFRAMES_MAX = 8,
	/* All of a scene but the code lies in so many bytes below the code. */
	SCENE_BYTES = 12288,
};

struct scene {
	struct fake_vm *vm;
	struct attach_registers regs;
	struct luastate_cframe cframes[SCENE_CFRAMES_MAX]; /* newest first */
	size_t cframe_count;
};

/** Build number @p number. Release with scene_deinit(). */
void scene_init(struct scene *scene, unsigned number);
void scene_deinit(struct scene *scene);

/** First address of the scene's bytes. */
uint64_t scene_start(const struct fake_vm *vm);

#endif
