/* SPDX-License-Identifier: MIT */
/* The call tree as a list, and a list with one line selected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/model/top_list.h"
#include "cli/top/model/top_tree.h"

#define NONE FORMAT_LIVE_NO_NODE

/*
 * all 100
 *   main 90
 *     heavy 70
 *       deep 60
 *     light 20
 *       leaf 20
 *   other 10
 */
static struct format_live_node nodes[] = {
	{ { .name = "all", .count = { .total = 100, .window_total = 10 } },
	  1000,
	  NONE,
	  0,
	  1,
	  NONE,
	  2 },
	{ { .name = "main", .count = { .total = 90, .window_total = 10 } }, 1001, 0, 1, 3, 2, 2 },
	{ { .name = "other", .count = { .total = 10 } }, 1002, 0, 1, NONE, NONE, 0 },
	{ { .name = "heavy", .count = { .total = 70 } }, 1003, 1, 2, 5, 4, 1 },
	{ { .name = "light", .count = { .total = 20, .window_total = 10 } },
	  1004,
	  1,
	  2,
	  6,
	  NONE,
	  1 },
	{ { .name = "deep", .count = { .self = 60, .total = 60 } }, 1005, 3, 3, NONE, NONE, 0 },
	{ { .name = "leaf", .count = { .self = 20, .total = 20, .window_total = 10 } },
	  1006,
	  4,
	  3,
	  NONE,
	  NONE,
	  0 },
};
static const struct format_live_tree tree = { nodes, sizeof(nodes) / sizeof(nodes[0]) };

/* The names in order, with what stands before them. */
static void assert_list(const struct top_folds *folds, const struct top_choice *choice,
			const char *wanted)
{
	struct top_table table = { 0 };
	struct failure why;
	char got[256] = "";

	assert_int_equal(0, top_tree_list(&table, &tree, folds, choice, &why));
	for (size_t i = 0; i < table.count; i++) {
		strcat(got, i ? " " : "");
		strcat(got, table.rows[i].mark == TOP_MARK_OPEN	    ? "-"
			    : table.rows[i].mark == TOP_MARK_FOLDED ? "+"
								    : "");
		strcat(got, table.rows[i].name);
	}
	assert_string_equal(wanted, got);
	top_table_deinit(&table);
}

static void test_folds(void **state)
{
	struct top_folds folds = { 0 };
	struct top_choice choice = { 0 };

	(void)state;
	/* The heaviest path is open. */
	assert_list(&folds, &choice, "-all -main -heavy deep +light other");
	top_folds_set(&folds, 1004, true);
	assert_list(&folds, &choice, "-all -main -heavy deep -light leaf other");
	top_folds_set(&folds, 1001, false);
	assert_list(&folds, &choice, "-all +main other");
	top_folds_set(&folds, 1001, true);
	top_folds_set(&folds, 1003, false);
	assert_list(&folds, &choice, "-all -main +heavy -light leaf other");
	top_folds_set_below(&folds, &tree, 0, false);
	assert_list(&folds, &choice, "+all");
	top_folds_set_below(&folds, &tree, top_tree_find(&tree, 1000), true);
	assert_list(&folds, &choice, "-all -main -heavy deep -light leaf other");
	/* Of a node that is gone. */
	top_folds_set_below(&folds, &tree, top_tree_find(&tree, 7), false);
	assert_list(&folds, &choice, "-all -main -heavy deep -light leaf other");
	top_folds_set_below(&folds, &tree, 3, false);
	assert_list(&folds, &choice, "-all -main +heavy -light leaf other");
	top_folds_deinit(&folds);
}

/* In the window other paths are heavy, and what was hot once is none. */
static void test_window(void **state)
{
	struct top_folds folds = { 0 };
	struct top_choice choice = { .window = true };

	(void)state;
	assert_list(&folds, &choice, "-all -main -light leaf");
}

/* However many were said, a bounded number is remembered: the newest. */
static void test_many(void **state)
{
	struct top_folds folds = { 0 };
	struct top_choice choice = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 3 * TOP_FOLDS_MAX; i++)
		top_folds_set(&folds, 1000000 + i * 7919 % 99991, i % 2);
	top_folds_set(&folds, 1001, false);
	assert_true(folds.count <= TOP_FOLDS_MAX);
	for (size_t i = 1; i < folds.count; i++)
		assert_true(folds.items[i - 1].key < folds.items[i].key);
	assert_list(&folds, &choice, "-all +main other");
	top_folds_deinit(&folds);
}

static size_t same(const void *context, uint64_t id)
{
	return id < *(const size_t *)context ? (size_t)id : SIZE_MAX;
}

static void test_list(void **state)
{
	struct top_list list = { 0 };
	size_t count = 100;

	(void)state;
	top_list_update(&list, count, 10, same, &count);
	assert_true(top_list_move(&list, TOP_DOWN, 10));
	assert_int_equal(1, list.selected);
	assert_true(top_list_move(&list, TOP_PAGE_DOWN, 10));
	assert_int_equal(10, list.selected);
	assert_int_equal(1, list.first);
	assert_true(top_list_move(&list, TOP_LAST, 10));
	assert_int_equal(99, list.selected);
	assert_int_equal(90, list.first);
	assert_true(top_list_move(&list, TOP_DOWN, 10));
	assert_int_equal(99, list.selected);
	assert_true(top_list_move(&list, TOP_PAGE_UP, 10));
	assert_int_equal(90, list.selected);
	/* It stays with its line, which has another place now. */
	list.id = 40;
	top_list_update(&list, count, 10, same, &count);
	assert_int_equal(40, list.selected);
	assert_int_equal(40, list.first);
	/* A line that is gone: the same place, or the last one. */
	count = 30;
	top_list_update(&list, count, 10, same, &count);
	assert_int_equal(29, list.selected);
	assert_int_equal(20, list.first);
	/* A larger screen has no blank lines at the end. */
	top_list_scroll(&list, 25);
	assert_int_equal(5, list.first);
	assert_true(top_list_move(&list, TOP_FIRST, 25));
	assert_int_equal(0, list.first);
	/* At the top it is the top that is selected, whatever comes to it. */
	list.id = 12;
	top_list_update(&list, count, 25, same, &count);
	assert_int_equal(0, list.selected);
	count = 0;
	top_list_update(&list, count, 25, same, &count);
	assert_true(top_list_move(&list, TOP_LAST, 25));
	assert_int_equal(0, list.selected);
	assert_false(top_list_move(&list, TOP_ENTER, 25));
	assert_false(top_list_move(&list, TOP_QUIT, 25));
}

/* No key has two meanings, and each has a help. */
static void test_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < top_key_count; i++) {
		assert_non_null(top_keys[i].help);
		for (size_t k = 0; k < TOP_KEYS_MAX && top_keys[i].keys[k]; k++)
			assert_int_equal(top_keys[i].command, top_keys_find(top_keys[i].keys[k]));
	}
	for (enum top_command command = TOP_NOTHING + 1; command <= TOP_QUIT; command++) {
		size_t found = 0;

		for (size_t i = 0; i < top_key_count; i++)
			found += top_keys[i].command == command;
		assert_int_equal(1, found);
	}
	assert_int_equal(TOP_NOTHING, top_keys_find(0));
	assert_int_equal(TOP_NOTHING, top_keys_find(-1));
	assert_int_equal(TOP_NOTHING, top_keys_find('y'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folds), cmocka_unit_test(test_window),
		cmocka_unit_test(test_many),  cmocka_unit_test(test_list),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
