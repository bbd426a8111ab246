/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_SCENES_H
#define TESTS_LUASTATE_SCENES_H

/* Small VMs in typical situations, for fuzzing. */

#include "fake_vm.h"

enum {
	SCENE_ROWS = 5,
	SCENE_COUNT = 9,
	SCENE_CFRAMES_MAX = 8,
	/* All of a scene but the code lies in these bytes below the code, by their offsets in the
	 * fake memory. */
	SCENE_BYTES = 12288,
};

struct scene {
	struct fake_vm *vm;
	struct attach_registers regs;
	struct luastate_vm_frame vm_frames[SCENE_CFRAMES_MAX]; /* newest first */
	size_t vm_frame_count;
};

/** Build number @p number under one of some layouts, which differ in kind. Release with
 * scene_deinit(). */
void scene_init(struct scene *scene, unsigned row, unsigned number);
/** Likewise under any layout, and in any number of bytes. */
void scene_init_layout(struct scene *scene, const struct luastate_layout *layout, unsigned number);
void scene_deinit(struct scene *scene);

/** Offset of the scene's first byte. */
size_t scene_start(const struct fake_vm *vm);

#endif
