/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "attach/array.h"

static void test_grows(void **state)
{
	uint32_t *items = NULL, room = 0, none = 0;

	(void)state;
	assert_true(ARRAY_RESERVE(items, room, none));
	assert_null(items);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(ARRAY_RESERVE(items, room, i + 1));
		assert_true(room > i);
		items[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	assert_true(ARRAY_RESERVE(items, room, 123456));
	assert_int_equal(room, 123456);
	free(items);
}

/* The type of the room says how many there may be. */
static void test_is_bounded(void **state)
{
	uint8_t *items = NULL, room = 0;
	size_t wanted = 256;

	(void)state;
	assert_true(ARRAY_RESERVE(items, room, 100));
	assert_int_equal(room, 100);
	assert_true(ARRAY_RESERVE(items, room, 101));
	assert_int_equal(room, 200);
	assert_true(ARRAY_RESERVE(items, room, 201));
	assert_int_equal(room, 201);
	assert_true(ARRAY_RESERVE(items, room, 255));
	assert_false(ARRAY_RESERVE(items, room, wanted));
	assert_int_equal(room, 255);
	free(items);
}

static void test_stays_without_memory(void **state)
{
	uint64_t *items = NULL;
	size_t room = 0;
	volatile size_t wanted = SIZE_MAX / 4;

	(void)state;
	assert_true(ARRAY_RESERVE(items, room, 1));
	items[0] = 4711;
	assert_false(ARRAY_RESERVE(items, room, wanted));
	assert_int_equal(items[0], 4711);
	assert_true(room < 4711);
	free(items);
}

static void test_new_ones_are_zero(void **state)
{
	uint64_t *items = NULL;
	uint32_t room = 0, had;

	(void)state;
	assert_true(ARRAY_RESERVE_ZEROED(items, room, 1));
	had = room;
	for (uint32_t i = 0; i < had; i++) {
		assert_int_equal(items[i], 0);
		items[i] = i + 1;
	}
	assert_true(ARRAY_RESERVE_ZEROED(items, room, had + 1));
	assert_true(room > had);
	for (uint32_t i = 0; i < room; i++)
		assert_int_equal(items[i], i < had ? i + 1 : 0);
	free(items);
}

static void test_searches(void **state)
{
	static const int items[] = { 1, 3, 3, 3, 7 };

	(void)state;
	for (size_t count = 0; count <= 5; count++)
		for (int wanted = 0; wanted < 9; wanted++) {
			size_t below = 0, upto = 0;

			for (size_t i = 0; i < count; i++) {
				below += items[i] < wanted;
				upto += items[i] <= wanted;
			}
			assert_int_equal(ARRAY_SEARCH(count, i, items[i] < wanted), below);
			assert_int_equal(ARRAY_SEARCH(count, i, items[i] <= wanted), upto);
		}
}

static void test_sorts(void **state)
{
	struct item {
		uint64_t key;
		int value;
	} items[] = { { UINT64_MAX, 0 }, { 0, 1 }, { (uint64_t)1 << 40, 2 }, { 5, 3 }, { 5, 3 } };
	static const int sorted[] = { 1, 3, 3, 2, 0 };

	(void)state;
	qsort(items, 5, sizeof(*items), array_by_first_u64);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(items[i].value, sorted[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_is_bounded),
		cmocka_unit_test(test_stays_without_memory),
		cmocka_unit_test(test_new_ones_are_zero),
		cmocka_unit_test(test_searches),
		cmocka_unit_test(test_sorts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
