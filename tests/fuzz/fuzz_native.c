/* SPDX-License-Identifier: MIT */
/* Forged files with LuaJIT: their code, their tables, and where they say that functions are. */
#include <stdlib.h>
#include <string.h>

#include "native_scene.h"

/** A change of the made-up file: where, and to what. */
struct change {
	uint16_t at;
	uint8_t part, value; /* part: code, data, a function's start or end, or a part's length */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void apply(struct native_scene *scene, const struct change *change)
{
	struct luastate_code_range *range = &scene->functions[change->at % scene->function_count];

	switch (change->part % 6) {
	case 0:
		scene->code[change->at % SCENE_CODE_BYTES] = change->value;
		break;
	case 1:
		scene->data[change->at % SCENE_DATA_BYTES] = change->value;
		break;
	case 2:
		range->start += (int8_t)change->value;
		break;
	case 3:
		range->end += (uint64_t)change->value << change->value % 50;
		break;
	case 4:
		scene->parts[change->at % 2].len = change->at % SCENE_DATA_BYTES;
		break;
	default:
		scene->parts[change->at % 2].start += change->value;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct native_scene scene;
	struct luastate_native *native = NULL;
	struct change change;
	struct failure why;

	native_scene_make(&scene);
	for (size_t at = 0; len - at >= sizeof(change); at += sizeof(change)) {
		memcpy(&change, bytes + at, sizeof(change));
		apply(&scene, &change);
	}
	if (luastate_native_create(&scene.module, &native, &why) != 0)
		return 0;
	for (size_t i = 0; i < luastate_native_count(native); i++) {
		struct luastate_native_function function;

		luastate_native_get(native, i, &function);
		if (function.start >= function.end ||
		    (function.name && strlen(function.name) > 127))
			abort();
	}
	luastate_native_is_vm(native, scene.between);
	luastate_native_destroy(native);
	return 0;
}
