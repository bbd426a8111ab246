/* SPDX-License-Identifier: MIT */
/* Names of LuaJIT's native functions in a made-up file: by tables and by calls, and which code is
 * LuaJIT's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native_scene.h"
#include "signatures.inc"

static struct native_scene scene;
static struct luastate_native *native;

static int make(void **state)
{
	(void)state;
	native_scene_make(&scene);
	return 0;
}

static int end(void **state)
{
	(void)state;
	luastate_native_destroy(native);
	native = NULL;
	return 0;
}

static void read_names(void)
{
	struct failure why;

	luastate_native_destroy(native);
	native = NULL;
	assert_int_equal(0, luastate_native_create(&scene.module, &native, &why));
}

/* The name at an address; "" if it has none. */
static const char *name_at(uint64_t address)
{
	struct luastate_native_function function;

	return luastate_native_find(native, address, &function) && function.name ? function.name
										 : "";
}

static enum luastate_native_how how_at(uint64_t address)
{
	struct luastate_native_function function;

	assert_true(luastate_native_find(native, address, &function));
	return function.how;
}

static void test_libraries(void **state)
{
	static const char *const prefixes[SCENE_LIBRARIES] = { "",	 "string_", "jit_opt_",
							       "table_", "os_",	    "debug_" };

	(void)state;
	read_names();
	for (unsigned i = 0; i < SCENE_LIBRARIES; i++) {
		for (unsigned k = 0; k < 4; k++) {
			static const char *const begin[4] = { "lj_cf_", NULL, "lj_ffh_", "lj_cf_" };
			static const char *const rest[4] = { "plain", NULL, "asm", "last" };
			char name[64] = "";

			if (begin[k])
				snprintf(name, sizeof(name), "%s%s%s", begin[k], prefixes[i],
					 rest[k]);
			assert_string_equal(name, name_at(scene.library[i][k]));
			assert_int_equal(begin[k] ? LUASTATE_NATIVE_BY_TABLE
						  : LUASTATE_NATIVE_UNNAMED,
					 how_at(scene.library[i][k]));
		}
	}
	assert_string_equal("lj_lib_register", name_at(scene.lib_register));
}

/* A table that is not one of names, or has other functions than it says, names nothing. */
static void test_broken_library(void **state)
{
	uint64_t word = scene.before + 1;

	(void)state;
	memcpy(native_scene_at(&scene, scene.names_tables[1] + 8), "\x3f", 1);
	read_names();
	assert_string_equal("", name_at(scene.library[1][0]));
	assert_string_equal("lj_cf_table_plain", name_at(scene.library[3][0]));
	/* The table of functions comes 32 bytes behind that of names, or more. */
	for (size_t at = 0; at + 8 <= scene.data_len; at += 8)
		if (memcmp(scene.data + at, &scene.library[3][3], 8) == 0)
			memcpy(scene.data + at, &word, sizeof(word));
	read_names();
	assert_string_equal("", name_at(scene.library[3][0]));
	/* Four libraries that agree do not prove who registers them. */
	assert_string_equal("", name_at(scene.library[0][0]));
	assert_string_equal("", name_at(scene.lib_register));
}

static void test_calls(void **state)
{
	(void)state;
	read_names();
	assert_string_equal("lj_func_closeuv", name_at(scene.closeuv));
	assert_string_equal("lj_tab_new", name_at(scene.tab_new));
	assert_string_equal("lj_tab_dup", name_at(scene.tab_dup));
	assert_string_equal("lj_gc_step_fixtop", name_at(scene.fixtop));
	assert_int_equal(LUASTATE_NATIVE_BY_CALLS, how_at(scene.tab_new));
	assert_string_equal("lj_tab_new", name_at(scene.tab_new + 1));
	/* lj_gc_step() is not known, so neither is what it calls. */
	assert_string_equal("", name_at(scene.step));
	assert_string_equal("", name_at(scene.onestep));
}

/* Opcodes of other numbers than the known ones. */
static void test_unknown_opcodes(void **state)
{
	(void)state;
	scene.data[2 * 40] ^= 1; /* the table comes first */
	read_names();
	assert_string_equal("", name_at(scene.closeuv));
	assert_string_equal("lj_cf_string_plain", name_at(scene.library[1][0]));
}

static void test_free_functions(void **state)
{
	(void)state;
	read_names();
	assert_string_equal("lj_str_free", name_at(scene.frees[0]));
	assert_string_equal("lj_state_free", name_at(scene.frees[2]));
	assert_string_equal("lj_udata_free", name_at(scene.frees[8]));
	/* Any nine functions: the third one does not call lj_func_closeuv(). */
	memset(native_scene_at(&scene, scene.frees[2] + 2), 0x90, 5);
	read_names();
	assert_string_equal("", name_at(scene.frees[0]));
	/* It calls another file, and lj_func_closeuv() is not known. */
	memcpy(native_scene_at(&scene, scene.frees[2] + 2), "\xe8\x7f\x7f\x7f\x7f", 5);
	memset(native_scene_at(&scene,
			       scene.module.interpreter.start + SCENE_UCLO * SCENE_OPCODE_BYTES),
	       0x90, 5);
	read_names();
	assert_string_equal("", name_at(scene.closeuv));
	assert_string_equal("", name_at(scene.frees[0]));
}

/* Two kinds of evidence disagree: a library's function is the one that TNEW calls. */
static void test_disagreement(void **state)
{
	(void)state;
	for (size_t at = 0; at + 8 <= scene.data_len; at += 8)
		if (memcmp(scene.data + at, &scene.library[1][0], 8) == 0)
			memcpy(scene.data + at, &scene.tab_new, 8);
	read_names();
	assert_string_equal("", name_at(scene.tab_new));
	assert_string_equal("lj_tab_dup", name_at(scene.tab_dup));
}

/* One name for two functions. */
static void test_twins(void **state)
{
	uint8_t *text = NULL;

	(void)state;
	for (size_t at = 0; at + 8 <= scene.data_len; at++)
		if (memcmp(scene.data + at, "debug", 6) == 0)
			text = scene.data + at;
	assert_non_null(text);
	memcpy(text, "table", 6);
	read_names();
	assert_string_equal("", name_at(scene.library[3][0]));
	assert_string_equal("", name_at(scene.library[5][0]));
	assert_string_equal("lj_cf_os_plain", name_at(scene.library[4][0]));
}

static void test_span(void **state)
{
	(void)state;
	read_names();
	assert_true(luastate_native_is_vm(native, scene.between));
	assert_true(luastate_native_is_vm(native, scene.module.interpreter.start + 100));
	assert_string_equal("", name_at(scene.between));
	assert_false(luastate_native_is_vm(native, scene.before));
	assert_false(luastate_native_is_vm(native, scene.after));
	assert_false(luastate_native_is_vm(native, SCENE_DATA));
	assert_false(luastate_native_is_vm(native, 0));
	assert_false(luastate_native_is_vm(native, UINT64_MAX));
}

static void test_cold_part(void **state)
{
	struct luastate_native_function function;
	int32_t distance;

	(void)state;
	read_names();
	assert_true(luastate_native_find(native, scene.cold, &function));
	assert_true(function.is_cold);
	/* It has another parent, too. */
	distance = (int32_t)(scene.cold + 1 - (scene.between + 6));
	memcpy(native_scene_at(&scene, scene.between), "\x0f\x85", 2);
	memcpy(native_scene_at(&scene, scene.between + 2), &distance, sizeof(distance));
	read_names();
	assert_false(luastate_native_is_vm(native, scene.cold));
}

static unsigned symbols; /* functions with symbols of others, from an address on */
static uint64_t symbols_from;

static const char *symbol_at(void *context, uint64_t address)
{
	(void)context;
	for (unsigned i = 0; i < symbols; i++)
		if (scene.functions[i + 1].start == address)
			return "ngx_http_lua_run_thread";
	return address == symbols_from ? "lua_gc" : NULL;
}

/* A few functions of others are taken out; more of them show that other code is there. */
static void test_foreign_symbols(void **state)
{
	(void)state;
	scene.module.symbol = symbol_at;
	symbols_from = scene.between;
	symbols = 2; /* the one before LuaJIT's, and one of LuaJIT's */
	read_names();
	assert_true(luastate_native_is_vm(native, scene.between));
	symbols = 24;
	read_names();
	assert_false(luastate_native_is_vm(native, scene.between));
	assert_true(luastate_native_is_vm(native, scene.tab_new));
	symbols = 0;
}

static void test_no_interpreter(void **state)
{
	struct failure why;

	(void)state;
	scene.module.interpreter.start += 16;
	assert_int_equal(-1, luastate_native_create(&scene.module, &native, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
}

/* Any bytes anywhere; functions that overlap, or are not in the file. */
static void test_mutations(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct failure why;

		native_scene_make(&scene);
		for (unsigned i = 0; i < 1 + round % 40; i++) {
			uint8_t *bytes = i % 2 ? scene.code : scene.data;

			seed = seed * 1664525 + 1013904223;
			bytes[seed % (i % 2 ? scene.code_len : scene.data_len)] =
				(uint8_t)(seed >> 24);
		}
		if (round % 3 == 0) {
			struct luastate_code_range *range =
				&scene.functions[seed % scene.function_count];

			range->end += seed >> 8;
			range->start += seed & 0xff;
		}
		scene.parts[round % 2].len -= seed % 0x4000;
		luastate_native_destroy(native);
		native = NULL;
		if (luastate_native_create(&scene.module, &native, &why) != 0)
			continue;
		for (size_t i = 0; i < luastate_native_count(native); i++) {
			struct luastate_native_function function;

			luastate_native_get(native, i, &function);
			assert_true(function.start < function.end);
			assert_true(!function.name || strlen(function.name) < 128);
		}
	}
}

static void test_table_of_signatures(void **state)
{
	size_t count = sizeof(signatures) / sizeof(signatures[0]);
	size_t names = sizeof(signature_names) / sizeof(signature_names[0]) - 1;

	(void)state;
	for (size_t i = 0; i + 1 < count; i++) {
		assert_true(signatures[i].hash < signatures[i + 1].hash);
		assert_true(signatures[i].name < names);
	}
	count = sizeof(call_names) / sizeof(call_names[0]) - 1;
	for (size_t i = 0; i < count; i++)
		assert_true(call_names[i] <= names);
	for (size_t i = 0; i + 1 < sizeof(call_lists) / sizeof(call_lists[0]); i++)
		assert_true(call_lists[i].count <= count &&
			    call_lists[i].first <= count - call_lists[i].count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_libraries, make, end),
		cmocka_unit_test_setup_teardown(test_broken_library, make, end),
		cmocka_unit_test_setup_teardown(test_calls, make, end),
		cmocka_unit_test_setup_teardown(test_unknown_opcodes, make, end),
		cmocka_unit_test_setup_teardown(test_free_functions, make, end),
		cmocka_unit_test_setup_teardown(test_disagreement, make, end),
		cmocka_unit_test_setup_teardown(test_twins, make, end),
		cmocka_unit_test_setup_teardown(test_span, make, end),
		cmocka_unit_test_setup_teardown(test_cold_part, make, end),
		cmocka_unit_test_setup_teardown(test_foreign_symbols, make, end),
		cmocka_unit_test_setup_teardown(test_no_interpreter, make, end),
		cmocka_unit_test_setup_teardown(test_mutations, make, end),
		cmocka_unit_test(test_table_of_signatures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
