/* SPDX-License-Identifier: MIT */
#include "symbols/space/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char sample[] =
	"55d0c0a00000-55d0c0a02000 r--p 00000000 fe:00 248030                     /usr/bin/a b\n"
	"55d0c0a02000-55d0c0a07000 r-xp 00002000 fe:00 248030                     /usr/bin/a b\n"
	"55d0c1a02000-55d0c1a23000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000001000 rw-s 00000000 00:01 99                         /x\\012y "
	"(deleted)\n"
	"7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n"
	"7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void test_parse(void **state)
{
	struct symbols_maps maps;
	struct failure why;

	(void)state;
	assert_int_equal(symbols_maps_init(sample, strlen(sample), &maps, &why), 0);
	assert_int_equal(maps.count, 7);
	assert_int_equal(maps.list[1].start, 0x55d0c0a02000);
	assert_int_equal(maps.list[1].end, 0x55d0c0a07000);
	assert_int_equal(maps.list[1].offset, 0x2000);
	assert_int_equal(maps.list[1].dev_major, 0xfe);
	assert_int_equal(maps.list[1].dev_minor, 0);
	assert_int_equal(maps.list[1].inode, 248030);
	assert_true(maps.list[1].readable && maps.list[1].executable && maps.list[1].is_private);
	assert_false(maps.list[1].writable);
	assert_string_equal(maps.list[1].path, "/usr/bin/a b");
	assert_false(maps.list[3].is_private);
	assert_string_equal(maps.list[3].path, "/x\ny (deleted)");
	assert_string_equal(maps.list[4].path, "");
	assert_string_equal(maps.list[6].path, "[vsyscall]");
	assert_int_equal(maps.len, strlen(sample));
	assert_string_equal(maps.text, sample);
	symbols_maps_deinit(&maps);
}

static void test_find(void **state)
{
	struct symbols_maps maps;

	(void)state;
	assert_int_equal(symbols_maps_init(sample, strlen(sample), &maps, NULL), 0);
	assert_int_equal(symbols_maps_find(&maps, 0x55d0c0a00000), 0);
	assert_int_equal(symbols_maps_find(&maps, 0x55d0c0a01fff), 0);
	assert_int_equal(symbols_maps_find(&maps, 0x55d0c0a02000), 1);
	assert_int_equal(symbols_maps_find(&maps, 0x55d0c0a07000), -1);
	assert_int_equal(symbols_maps_find(&maps, 0), -1);
	assert_int_equal(symbols_maps_find(&maps, UINT64_MAX), -1);
	assert_int_equal(symbols_maps_find(&maps, 0xffffffffff600000), 6);
	symbols_maps_deinit(&maps);
}

static void test_empty_and_unfinished(void **state)
{
	static const char no_line_feed[] = "1000-2000 r--p 00000000 00:00 0";
	struct symbols_maps maps;

	(void)state;
	assert_int_equal(symbols_maps_init("", 0, &maps, NULL), 0);
	assert_int_equal(maps.count, 0);
	assert_int_equal(symbols_maps_find(&maps, 1), -1);
	symbols_maps_deinit(&maps);
	assert_int_equal(symbols_maps_init(no_line_feed, strlen(no_line_feed), &maps, NULL), 0);
	assert_int_equal(maps.count, 1);
	symbols_maps_deinit(&maps);
}

static void test_hostile(void **state)
{
	static const char *const texts[] = {
		"\n",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r--p",
		"1000-2000 r--p 00000000",
		"1000-2000 r--p 00000000 00:00",
		"2000-1000 r--p 00000000 00:00 0 \n",
		"1000-1000 r--p 00000000 00:00 0 \n",
		"1000-2000 q--p 00000000 00:00 0 \n",
		"1000-2000 r--p zzz 00:00 0 \n",
		"1000-2000 r--p 00000000 00:00 -1 \n",
		"10000000000000000-20000000000000000 r--p 00000000 00:00 0 \n",
		"1000-2000 r--p 00000000 100000000:00 0 \n",
		"1000-2000 r--p 00000000 00:00 99999999999999999999 \n",
		" 1000-2000 r--p 00000000 00:00 0 \n",
		"1000-3000 r--p 00000000 00:00 0 \n2000-4000 r--p 00000000 00:00 0 \n",
		"3000-4000 r--p 00000000 00:00 0 \n1000-2000 r--p 00000000 00:00 0 \n",
		"1000-2000 r--p 00000000 00:00 0 \n\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct symbols_maps maps = { .count = 77 };
		struct failure why = { 0 };

		assert_int_equal(symbols_maps_init(texts[i], strlen(texts[i]), &maps, &why), -1);
		assert_int_equal(why.kind, FAILURE_INVALID);
		assert_int_equal(maps.count, 77); /* unchanged */
	}
}

static void test_failure_has_the_line(void **state)
{
	static const char text[] = "1000-2000 r--p 00000000 00:00 0 \nnonsense\n";
	struct symbols_maps maps;
	struct failure why;

	(void)state;
	assert_int_equal(symbols_maps_init(text, strlen(text), &maps, &why), -1);
	assert_int_equal(why.address, 33);
}

static void test_nul_in_a_path(void **state)
{
	static const char text[] = "1000-2000 r--p 00000000 00:00 1 /a\0b\n";
	struct symbols_maps maps;
	struct failure why;

	(void)state;
	assert_int_equal(symbols_maps_init(text, sizeof(text) - 1, &maps, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
}

static void test_limits(void **state)
{
	struct symbols_maps maps;
	struct failure why;
	char *text = malloc(SYMBOLS_MAPS_MAX_BYTES + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', SYMBOLS_MAPS_MAX_BYTES + 1);
	assert_int_equal(symbols_maps_init(text, SYMBOLS_MAPS_MAX_BYTES + 1, &maps, &why), -1);
	assert_int_equal(why.kind, FAILURE_LIMIT);
	memset(text, '\n', SYMBOLS_MAPS_MAX_COUNT + 1);
	assert_int_equal(symbols_maps_init(text, SYMBOLS_MAPS_MAX_COUNT + 1, &maps, &why), -1);
	assert_int_equal(why.kind, FAILURE_LIMIT);
	/* One overlong line. */
	memcpy(text, "1000-2000 r--p 00000000 00:00 1 ", 32);
	memset(text + 32, '/', 20000);
	assert_int_equal(symbols_maps_init(text, 20032, &maps, &why), -1);
	assert_int_equal(why.kind, FAILURE_INVALID);
	free(text);
}

static void test_read_own(void **state)
{
	struct symbols_maps maps;
	struct failure why;
	char *text;
	size_t len;
	ptrdiff_t index;

	(void)state;
	assert_int_equal(symbols_maps_read("/proc/self/maps", &text, &len, &why), 0);
	assert_int_equal(symbols_maps_init(text, len, &maps, &why), 0);
	free(text);
	index = symbols_maps_find(&maps, (uint64_t)(uintptr_t)test_read_own);
	assert_true(index >= 0);
	assert_true(maps.list[index].executable);
	symbols_maps_deinit(&maps);
	assert_int_equal(symbols_maps_read("/proc/self/no-such-file", &text, &len, &why), -1);
	assert_int_equal(why.kind, FAILURE_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_empty_and_unfinished),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_failure_has_the_line),
		cmocka_unit_test(test_nul_in_a_path),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_read_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
