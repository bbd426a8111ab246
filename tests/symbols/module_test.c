/* SPDX-License-Identifier: MIT */
/* Code and data of files, as this process has them loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/module.h"

static struct attach_process *process;
static struct symbols_space *space;

int module_test_first(int value);
int module_test_second(int value);

__attribute__((noinline)) int module_test_first(int value)
{
	return value * 3 + (int)getpid();
}

__attribute__((noinline)) int module_test_second(int value)
{
	return value * 5 + (int)getppid();
}

/* Pointers that the loader relocates, to functions and to data. */
static const char text[] = "a text in data";
static const struct {
	int (*functions[2])(int value);
	const char *text;
} table = { { module_test_first, module_test_second }, text };
static const void *volatile kept = &table;

static int open_own(void **state)
{
	struct failure why;

	(void)state;
	if (attach_process_open(getpid(), &process, &why) < 0)
		return -1;
	return symbols_space_create(process, &space, &why);
}

static int close_own(void **state)
{
	(void)state;
	symbols_space_destroy(space);
	attach_process_close(process);
	return 0;
}

static uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static uint64_t address_of_first(void)
{
	return (uint64_t)(uintptr_t)module_test_first;
}

static const uint8_t *bytes_at(const struct symbols_module *module, uint64_t address, size_t len)
{
	for (size_t i = 0; i < module->part_count; i++) {
		const struct symbols_module_part *part = &module->parts[i];

		if (address >= part->start && address - part->start <= part->len &&
		    len <= part->len - (address - part->start))
			return part->bytes + (address - part->start);
	}
	return NULL;
}

static bool has_function(const struct symbols_module *module, uint64_t start)
{
	for (size_t i = 0; i < module->function_count; i++)
		if (module->functions[i].start == start)
			return module->functions[i].end > start;
	return false;
}

static void test_own_program(void **state)
{
	struct symbols_module module;
	struct symbols_file_id id;
	struct failure why;
	const uint8_t *bytes;
	uint64_t bias, words[3];

	(void)state;
	assert_true(symbols_find_file(space, address_of_first(), &id, &bias));
	assert_int_equal(0, symbols_module_init(space, address_of_first(), &module, &why));
	assert_true(has_function(&module, address_of_first() - bias));
	assert_true(has_function(&module, (uint64_t)(uintptr_t)module_test_second - bias));
	for (size_t i = 1; i < module.function_count; i++)
		assert_true(module.functions[i - 1].end <= module.functions[i].start);
	bytes = bytes_at(&module, address_of(text) - bias, sizeof(text));
	assert_non_null(bytes);
	assert_memory_equal(text, bytes, sizeof(text));
	/* As the loader has relocated them, less the bias. */
	bytes = bytes_at(&module, address_of((const void *)kept) - bias, sizeof(words));
	assert_non_null(bytes);
	memcpy(words, bytes, sizeof(words));
	assert_int_equal(address_of_first(), words[0] + bias);
	assert_int_equal((uint64_t)(uintptr_t)module_test_second, words[1] + bias);
	assert_int_equal(address_of(text), words[2] + bias);
	symbols_module_deinit(&module);
}

static void test_symbols(void **state)
{
	char name[SYMBOLS_MODULE_NAME_MAX];

	(void)state;
	assert_true(symbols_module_symbol(space, address_of_first(), name));
	assert_string_equal("module_test_first", name);
	assert_false(symbols_module_symbol(space, address_of_first() + 1, name));
	assert_false(symbols_module_symbol(space, (uint64_t)(uintptr_t)address_of, name));
	assert_false(symbols_module_symbol(space, 8, name));
}

/* One file has one id, another one has another. */
static void test_files(void **state)
{
	struct symbols_file_id own, data, library;
	uint64_t bias, data_bias;

	(void)state;
	assert_true(symbols_find_file(space, address_of_first(), &own, &bias));
	assert_true(symbols_find_file(space, address_of(text), &data, &data_bias));
	assert_memory_equal(&own, &data, sizeof(own));
	assert_int_equal(bias, data_bias);
	assert_true(symbols_find_file(space, (uint64_t)(uintptr_t)getpid, &library, &bias));
	assert_int_not_equal(own.inode, library.inode);
	assert_false(symbols_find_file(space, getauxval(AT_SYSINFO_EHDR), &library, &bias));
	assert_false(symbols_find_file(space, address_of(&own), &library, &bias));
}

static void test_no_file(void **state)
{
	struct symbols_module module;
	struct failure why;

	(void)state;
	assert_int_equal(-1, symbols_module_init(space, address_of(&why), &module, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, open_own, close_own);
}
