/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "format/text/builtin_names.h"

/** Our table is that of the build that wrote the golden streams, in both directions. */
static void test_golden_table(void **state)
{
	FILE *file = fopen(TEST_DATA_DIR "/golden/ffnames.txt", "r");
	char name[100];
	unsigned number, count = 0;

	(void)state;
	assert_non_null(file);
	while (fscanf(file, "%u %99s", &number, name) == 2) {
		uint64_t found;

		assert_non_null(format_ffname_of(number));
		assert_string_equal(name, format_ffname_of(number));
		if (number >= FORMAT_FFNAME_FIRST) {
			assert_true(format_ffname_find(name, &found));
			assert_int_equal(number, found);
		}
		count++;
	}
	assert_int_equal(209, count);
	assert_null(format_ffname_of(count));
	assert_null(format_ffname_of(UINT64_MAX));
	fclose(file);
}

/** Numbers 0 and 1 are kinds, not functions. */
static void test_not_functions(void **state)
{
	uint64_t found = 77;

	(void)state;
	assert_false(format_ffname_find("Lua", &found));
	assert_false(format_ffname_find("C", &found));
	assert_false(format_ffname_find("table.nothing", &found));
	assert_int_equal(77, found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_table),
		cmocka_unit_test(test_not_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
