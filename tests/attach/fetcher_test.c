/* SPDX-License-Identifier: MIT */
/* Many small reads in few calls: the same bytes as single reads, also where memory is missing. */
#include "attach/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process.h"

enum {
	PAGES = 200,
	PAGE = 4096,
	ROUNDS = 50,
	READS = 300,
};

struct scene {
	struct attach_process *process;
	struct attach_fetcher *fetcher;
	struct attach_pieces pieces;
	uint8_t *memory; /* PAGES pages with different bytes */
};

static int begin(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct failure why;

	assert_non_null(scene);
	assert_int_equal(0, attach_process_open(getpid(), &scene->process, &why));
	assert_int_equal(0, attach_fetcher_create(&scene->fetcher, &why));
	scene->memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(MAP_FAILED, scene->memory);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		scene->memory[i] = (uint8_t)(i * 2654435761u >> 13);
	*state = scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;

	munmap(scene->memory, PAGES * PAGE);
	attach_fetcher_destroy(scene->fetcher);
	attach_process_close(scene->process);
	free(scene);
	return 0;
}

/* @return whether it was read; then the bytes are right. */
static bool fetch(struct scene *scene, size_t at, size_t len)
{
	uint8_t bytes[5 * PAGE];

	assert_true(len <= sizeof(bytes));
	if (!attach_fetch(scene->fetcher, (uint64_t)(uintptr_t)scene->memory + at, bytes, len))
		return false;
	assert_memory_equal(bytes, scene->memory + at, len);
	return true;
}

static void test_same_bytes(void **state)
{
	struct scene *scene = *state;
	unsigned seed = 1;

	for (int round = 0; round < ROUNDS; round++) {
		attach_fetcher_begin(scene->fetcher, scene->process, &scene->pieces);
		for (int i = 0; i < READS; i++) {
			/* Half of the reads are those of the last round. */
			unsigned random = i % 2 ? (unsigned)i : (seed = seed * 1103515245 + 12345);
			size_t len = 1 + random / 7 % (i % 50 == 0 ? 5 * PAGE : 200);

			assert_true(fetch(scene, random / 64 % (PAGES * PAGE - len), len));
		}
		attach_fetcher_end(scene->fetcher, &scene->pieces);
		assert_true(scene->pieces.count > 0);
	}
}

/* The memory changes between copies: each copy shows it as it is at its beginning or later, whether
 * it was read the last time or not. */
static void test_new_bytes(void **state)
{
	const struct attach_pieces none = { .count = 0 };
	struct scene *scene = *state;

	for (int round = 0; round < ROUNDS; round++) {
		attach_fetcher_begin(scene->fetcher, scene->process,
				     round % 4 < 2 ? &none : &scene->pieces);
		assert_true(fetch(scene, 100, 8));
		assert_true(fetch(scene, 10 * PAGE, 8));
		attach_fetcher_end(scene->fetcher, &scene->pieces);
		scene->memory[100]++;
		scene->memory[10 * PAGE]++;
	}
}

/* Pieces that are gone, and reads that run into missing memory. */
static void test_missing_memory(void **state)
{
	struct scene *scene = *state;
	uint8_t *hole = scene->memory + 20 * PAGE;

	for (int round = 0; round < 4; round++) {
		attach_fetcher_begin(scene->fetcher, scene->process, &scene->pieces);
		assert_true(fetch(scene, 8, 8));
		assert_int_equal(round < 2, fetch(scene, 20 * PAGE + 16, 8));
		assert_int_equal(round < 2, fetch(scene, 20 * PAGE - 4, 8));
		assert_true(fetch(scene, 20 * PAGE - 8, 8));
		assert_true(fetch(scene, 40 * PAGE, 8));
		attach_fetcher_end(scene->fetcher, &scene->pieces);
		if (round == 1)
			assert_int_equal(0, munmap(hole, PAGE));
	}
	assert_false(attach_fetch(scene->fetcher, 16, &(uint64_t){ 0 }, 8));
	assert_false(attach_fetch(scene->fetcher, UINT64_MAX - 4, &(uint64_t){ 0 }, 8));
	assert_ptr_equal(hole, mmap(hole, PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

/* More pieces, and more bytes, than are read at once. */
static void test_limits(void **state)
{
	struct scene *scene = *state;

	for (int round = 0; round < 3; round++) {
		attach_fetcher_begin(scene->fetcher, scene->process, &scene->pieces);
		for (size_t page = 0; page < PAGES; page += 2)
			assert_true(fetch(scene, page * PAGE, round == 1 ? PAGE : 8));
		for (int i = 0; i < 2000; i++)
			assert_true(fetch(scene, 8 * (size_t)i, 8));
		attach_fetcher_end(scene->fetcher, &scene->pieces);
		assert_true(scene->pieces.count <= ATTACH_PIECES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_bytes, begin, end),
		cmocka_unit_test_setup_teardown(test_new_bytes, begin, end),
		cmocka_unit_test_setup_teardown(test_missing_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_limits, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
