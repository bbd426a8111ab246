/* SPDX-License-Identifier: MIT */
#include "native_scene.h"

#include <string.h>

/* Operands of opcodes, as LuaJIT's data has them (lj_bc_mode of 2.1.0-beta3). */
static const uint16_t modes[SCENE_OPCODES] = {
	12675, 12675, 14723, 14723, 8579,  8579,  9475,	 9475,	9347,  9347,  9219,  9219,  45441,
	45441, 45440, 45440, 45827, 45827, 45441, 45441, 33153, 10625, 21657, 23705, 25753, 27801,
	29849, 21657, 23705, 25753, 27801, 29849, 20889, 22937, 24985, 27033, 29081, 31129, 16929,
	46337, 46849, 45953, 46209, 46081, 45314, 45697, 45445, 46341, 46213, 46085, 46724, 5633,
	4865,  5505,  1281,  3331,  409,   1305,  793,	 409,	2459,  3355,  2843,  3202,  2459,
	19250, 19250, 19202, 19202, 19250, 19250, 45874, 46722, 45826, 45828, 45828, 45828, 46722,
	46722, 46722, 46722, 45826, 46722, 46722, 45826, 46724, 46724, 45828, 46724, 45060, 45060,
	45828, 45060, 45060, 45828, 45060, 45060,
};

/* ---- Bytes ------------------------------------------------------------------------------ */

static void put(struct native_scene *scene, const void *bytes, size_t len)
{
	memcpy(scene->code + scene->code_len, bytes, len);
	scene->code_len += len;
}

static uint64_t here(const struct native_scene *scene)
{
	return SCENE_CODE + scene->code_len;
}

/* An instruction whose last four bytes are a distance to an address. */
static void put_distance(struct native_scene *scene, const char *opcode, size_t len, uint64_t to)
{
	int32_t distance;

	put(scene, opcode, len);
	distance = (int32_t)(to - (here(scene) + 4));
	put(scene, &distance, sizeof(distance));
}

static void put_call(struct native_scene *scene, uint64_t to)
{
	put_distance(scene, "\xe8", 1, to);
}

static uint64_t put_data(struct native_scene *scene, const void *bytes, size_t len)
{
	uint64_t address;

	scene->data_len = (scene->data_len + 31) & ~(size_t)31;
	address = SCENE_DATA + scene->data_len;
	memcpy(scene->data + scene->data_len, bytes, len);
	scene->data_len += len;
	return address;
}

uint8_t *native_scene_at(struct native_scene *scene, uint64_t address)
{
	return address >= SCENE_DATA ? scene->data + (address - SCENE_DATA)
				     : scene->code + (address - SCENE_CODE);
}

/* ---- Functions -------------------------------------------------------------------------- */

static uint64_t begin_function(struct native_scene *scene)
{
	scene->code_len = (scene->code_len + 15) & ~(size_t)15;
	scene->functions[scene->function_count].start = here(scene);
	return here(scene);
}

static void end_function(struct native_scene *scene)
{
	put(scene, "\xc3", 1); /* ret */
	scene->functions[scene->function_count++].end = here(scene);
}

/* A function that calls at most one other. */
static uint64_t add_function(struct native_scene *scene, uint64_t callee)
{
	uint64_t start = begin_function(scene);

	put(scene, "\x89\xf8", 2); /* mov eax, edi */
	if (callee)
		put_call(scene, callee);
	end_function(scene);
	return start;
}

/* lea rcx, functions; lea rdx, names; lea rsi, name; call lj_lib_register */
static void add_library(struct native_scene *scene, const char *name, uint64_t names,
			uint64_t functions)
{
	uint64_t text = put_data(scene, name, strlen(name) + 1);

	begin_function(scene);
	put_distance(scene, "\x48\x8d\x0d", 3, functions);
	put_distance(scene, "\x48\x8d\x15", 3, names);
	put_distance(scene, "\x48\x8d\x35", 3, text);
	put_call(scene, scene->lib_register);
	end_function(scene);
}

/* ---- LuaJIT ----------------------------------------------------------------------------- */

/* Each opcode has the same room, and goes on by the dispatch table. */
static void put_interpreter(struct native_scene *scene)
{
	uint16_t offsets[SCENE_OPCODES + 8] = { 0 };
	struct luastate_code_range *range = &scene->functions[scene->function_count++];

	memset(scene->code + scene->code_len, 0x90, SCENE_INTERPRETER_BYTES);
	range->start = here(scene);
	range->end = range->start + SCENE_INTERPRETER_BYTES;
	for (unsigned i = 0; i < SCENE_OPCODES; i++) {
		offsets[i] = (uint16_t)(i * SCENE_OPCODE_BYTES);
		memcpy(scene->code + scene->code_len + offsets[i] + 24, "\x41\xff\x24\xc6", 4);
	}
	scene->module.interpreter = *range;
	scene->code_len += SCENE_INTERPRETER_BYTES;
	put_data(scene, modes, sizeof(modes));
	put_data(scene, offsets, sizeof(offsets));
}

static void put_calls(struct native_scene *scene, unsigned opcode, uint64_t first, uint64_t second)
{
	size_t len = scene->code_len;

	scene->code_len = (size_t)(scene->module.interpreter.start - SCENE_CODE) +
			  opcode * SCENE_OPCODE_BYTES;
	put_call(scene, first);
	if (second)
		put_call(scene, second);
	scene->code_len = len;
}

/* All kinds of tags: a C function, one without a name, two built-ins in assembler of which the
 * second has the first one's C function, strings, numbers, and a function in Lua. */
static const char names[] = "\x10\x00\x04"
			    "\xc3nil\x05plain\xfd\xfe"
			    "\x00"
			    "\x43"
			    "asm\x84same\xfc\x01\xfa\xfb"
			    "12345678"
			    "\xf9\x03lua\x00\x01\x02\x00\x01\x01\x01"
			    "bcde\x07xy\x02"
			    "\x04last\xff";

static void put_libraries(struct native_scene *scene)
{
	static const char *const libraries[SCENE_LIBRARIES] = { "_G",	 "string", "jit.opt",
								"table", "os",	   "debug" };

	for (unsigned i = 0; i < SCENE_LIBRARIES; i++) {
		uint64_t table[4];

		for (unsigned k = 0; k < 4; k++)
			table[k] = scene->library[i][k] = add_function(scene, 0);
		scene->names_tables[i] = put_data(scene, names, sizeof(names) - 1);
		add_library(scene, libraries[i], scene->names_tables[i],
			    put_data(scene, table, sizeof(table)));
	}
}

static void put_collector(struct native_scene *scene)
{
	for (unsigned i = 0; i < 9; i++)
		scene->frees[i] = add_function(scene, i == 2 ? scene->closeuv : 0);
	scene->free_table = put_data(scene, scene->frees, sizeof(scene->frees));
	begin_function(scene);
	put_distance(scene, "\x4c\x8d\x35", 3, scene->free_table); /* lea r14, table */
	end_function(scene);
}

/* A function and the part of it that seldom runs, which jump into each other. */
static void put_hot(struct native_scene *scene)
{
	size_t len;
	int32_t distance;

	scene->hot = begin_function(scene);
	put_distance(scene, "\x0f\x84", 2, scene->cold);
	put(scene, "\x90\x90", 2);
	end_function(scene);
	len = scene->code_len;
	scene->code_len = (size_t)(scene->cold - SCENE_CODE) + 1;
	distance = (int32_t)(scene->hot + 6 - (here(scene) + 4));
	put(scene, &distance, sizeof(distance));
	scene->code_len = len;
}

void native_scene_make(struct native_scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	scene->cold = begin_function(scene);
	put(scene, "\xe9\0\0\0\0", 5);
	end_function(scene);
	scene->before = add_function(scene, 0);
	scene->onestep = add_function(scene, 0);
	scene->step = add_function(scene, scene->onestep);
	scene->fixtop = add_function(scene, scene->step);
	scene->lib_register = add_function(scene, 0);
	scene->closeuv = add_function(scene, 0);
	scene->tab_new = add_function(scene, 0);
	scene->between = add_function(scene, 0);
	scene->tab_dup = add_function(scene, 0);
	put_interpreter(scene);
	put_calls(scene, SCENE_UCLO, scene->closeuv, 0);
	put_calls(scene, SCENE_TNEW, scene->tab_new, scene->fixtop);
	put_calls(scene, SCENE_TDUP, scene->tab_dup, scene->fixtop);
	put_libraries(scene);
	put_hot(scene);
	add_function(scene, scene->hot);
	put_collector(scene);
	add_function(scene, scene->lib_register);
	scene->after = add_function(scene, 0);
	/* Code far away, so that LuaJIT's is not the whole file. */
	scene->parts[0] =
		(struct luastate_module_part){ SCENE_CODE, scene->code, SCENE_CODE_BYTES, true };
	scene->parts[1] =
		(struct luastate_module_part){ SCENE_DATA, scene->data, SCENE_DATA_BYTES, false };
	scene->module.functions = scene->functions;
	scene->module.function_count = scene->function_count;
	scene->module.parts = scene->parts;
	scene->module.part_count = 2;
}
