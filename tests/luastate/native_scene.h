/* SPDX-License-Identifier: MIT */
/* A made-up file with the code and tables by which LuaJIT's native functions have names. */
#ifndef TESTS_LUASTATE_NATIVE_SCENE_H
#define TESTS_LUASTATE_NATIVE_SCENE_H

#include "luastate/native_names.h"

enum {
	SCENE_CODE = 0x10000, /* addresses */
	SCENE_DATA = 0x100000,
	SCENE_CODE_BYTES = 0x10000,
	SCENE_DATA_BYTES = 0x8000,
	SCENE_FUNCTIONS_MAX = 256,
	SCENE_INTERPRETER_BYTES = 0x2400,
	SCENE_OPCODE_BYTES = 32,
	SCENE_OPCODES = 97,
	SCENE_LIBRARIES = 6,
};

/** Kinds of opcodes whose code calls something. */
enum { SCENE_UCLO = 50, SCENE_TNEW = 52, SCENE_TDUP = 53 };

struct native_scene {
	uint8_t code[SCENE_CODE_BYTES], data[SCENE_DATA_BYTES];
	size_t code_len, data_len;
	struct luastate_code_range functions[SCENE_FUNCTIONS_MAX];
	size_t function_count;
	struct luastate_module_part parts[2];
	struct luastate_module module;
	/* What tests ask for, by address. */
	uint64_t lib_register, closeuv, tab_new, tab_dup, fixtop, step, onestep;
	uint64_t library[SCENE_LIBRARIES][4]; /* the C functions of each library */
	uint64_t frees[9];
	uint64_t free_table; /* the table of the functions in frees */
	uint64_t names_tables[SCENE_LIBRARIES];
	uint64_t between;	/* an unnamed function among LuaJIT's */
	uint64_t hot, cold;	/* a function, and its cold part before all others */
	uint64_t before, after; /* functions around LuaJIT's */
};

/** Make a file in which all evidence is complete. */
void native_scene_make(struct native_scene *scene);

/** Bytes at an address, to change them. */
uint8_t *native_scene_at(struct native_scene *scene, uint64_t address);

#endif
