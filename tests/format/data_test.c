/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attach/hash.h"
#include "format/data/map.h"
#include "format/sysprof/symbol_encoding.h"
#include "format/text.h"

static void test_functions(void **state)
{
	struct format_functions *functions = format_functions_create();
	struct format_function function = { .kind = FORMAT_KIND_LUA, .first_line = -1 };
	const struct format_function *first;
	char name[20] = "first", source[] = "@a.lua";
	uint32_t id;

	(void)state;
	assert_null(format_functions_get(functions, 0));
	function.name = name;
	function.source = source;
	assert_int_equal(0, format_functions_add(functions, &function, &id, NULL));
	first = format_functions_get(functions, 0);
	for (uint32_t i = 1; i < 2000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		function.source = NULL;
		function.address = i;
		assert_int_equal(0, format_functions_add(functions, &function, &id, NULL));
		assert_int_equal(i, id);
	}
	strcpy(name, "gone");
	assert_ptr_equal(first, format_functions_get(functions, 0));
	assert_string_equal("first", first->name);
	assert_string_equal("@a.lua", first->source);
	assert_int_equal(-1, first->first_line);
	assert_string_equal("f1999", format_functions_get(functions, 1999)->name);
	assert_null(format_functions_get(functions, 1999)->source);
	assert_null(format_functions_get(functions, 2000));
	assert_int_equal(2000, format_functions_count(functions));
	format_functions_destroy(functions);
	format_functions_destroy(NULL);
}

#define KEYS 5000

/** Against a plain array, with keys in random order, many of them equal. */
static void test_addrmap(void **state)
{
	static uint64_t values[KEYS];
	struct format_addrmap map = { 0 };
	uint64_t key, value;

	(void)state;
	assert_false(format_addrmap_get(&map, 0, &value));
	assert_false(format_addrmap_floor(&map, UINT64_MAX, &key, &value));
	srand(1);
	for (uint64_t i = 1; i < 20000; i++) {
		uint64_t at = (uint64_t)rand() % KEYS;

		values[at] = i;
		assert_int_equal(0, format_addrmap_set(&map, at * 3, i, NULL));
	}
	for (uint64_t probe = 0, nearest = 0; probe < (uint64_t)KEYS * 3; probe++) {
		bool present = probe % 3 == 0 && values[probe / 3];

		if (present)
			nearest = probe;
		assert_int_equal(present, format_addrmap_get(&map, probe, &value));
		if (format_addrmap_floor(&map, probe, &key, &value)) {
			assert_int_equal(nearest, key);
			assert_int_equal(values[key / 3], value);
		} else {
			assert_int_equal(0, values[0]);
		}
	}
	format_addrmap_deinit(&map);
}

static void test_addrmap_descending(void **state)
{
	struct format_addrmap map = { 0 };
	uint64_t value;

	(void)state;
	for (uint64_t i = 3000; i > 0; i--)
		assert_int_equal(0, format_addrmap_set(&map, i, i * 2, NULL));
	for (uint64_t i = 3000; i > 0; i--) {
		assert_true(format_addrmap_get(&map, i, &value));
		assert_int_equal(i * 2, value);
	}
	format_addrmap_deinit(&map);
}

static void test_intern(void **state)
{
	struct intern *intern = intern_create();
	uint32_t id;
	size_t len;

	(void)state;
	assert_false(intern_find(intern, "x", 1, &id));
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t key[2] = { i, 7 };

			assert_int_equal(0, intern_put(intern, key, sizeof(key), &id, NULL));
			assert_int_equal(i, id);
		}
	}
	assert_int_equal(0, intern_put(intern, "", 0, &id, NULL));
	assert_int_equal(1000, id);
	assert_string_equal("", intern_get(intern, id, &len));
	assert_int_equal(0, len);
	assert_int_equal(1001, intern_count(intern));
	intern_destroy(intern);
}

static void test_text(void **state)
{
	struct format_text text = { 0 };
	const char *string;

	(void)state;
	assert_int_equal(0, format_text_take(&text, &string, NULL));
	assert_string_equal("", string);
	for (int i = 0; i < 100; i++)
		format_text_addf(&text, "%d ", i);
	assert_int_equal(290, text.len);
	format_text_clear(&text);
	format_text_add_line(&text, "a\nb\0c\x7f", 6);
	format_text_add_string(&text, ".");
	assert_string_equal("a b c .", text.bytes);
	format_text_deinit(&text);
}

static void expect_shown(const char *bytes, const char *expected)
{
	struct format_text text = { 0 };

	format_text_add_string(&text, "<");
	format_text_add_shown(&text, bytes, strlen(bytes));
	assert_int_equal(0, strncmp(text.bytes, "<", 1));
	assert_string_equal(expected, text.bytes + 1);
	format_text_deinit(&text);
}

/* What a terminal obeys is not shown to it; the rest stays as it is. */
static void test_shown_text(void **state)
{
	(void)state;
	expect_shown("", "");
	expect_shown("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0",
		     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0");
	expect_shown("a\033[31m\n\x7f", "a [31m  ");
	/* C1: as characters, and as bytes that are no UTF-8. */
	expect_shown("a\xc2\x9b"
		     "31m\xc2\x80\xc2\x9f.",
		     "a  31m    .");
	expect_shown("a\x9b"
		     "31m\x80\x9f\xa0\xff.",
		     "a 31m  \xa0\xff.");
	/* Overlong, cut short, a surrogate: no characters, so each byte for itself. */
	expect_shown("\xc0\x9b", "\xc0 ");
	expect_shown("\xe0\x82\x9b", "\xe0  ");
	expect_shown("\xe2\x82", "\xe2 ");
	expect_shown("\xe2\x82(", "\xe2 (");
	expect_shown("\xed\xa0\x9b", "\xed\xa0 ");
	expect_shown("\xf4\x9b\x80\x80", "\xf4   ");
	/* Embeddings, overrides, isolates, and their neighbours. */
	expect_shown("\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
		     "\xe2\x80\xa9      \xe2\x80\xaf");
	expect_shown("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
		     "\xe2\x81\xa5      \xe2\x81\xaa");
}

static void test_roles(void **state)
{
	(void)state;
	assert_int_equal(SYMBOL_ROLE_CALL, symbol_role_of("lua_call"));
	assert_int_equal(SYMBOL_ROLE_CALL, symbol_role_of("lua_callk"));
	assert_int_equal(SYMBOL_ROLE_CALL, symbol_role_of("lua_pcall"));
	assert_int_equal(SYMBOL_ROLE_CPCALL, symbol_role_of("lua_cpcall"));
	assert_int_equal(SYMBOL_ROLE_NONE, symbol_role_of("lua_cal"));
	assert_int_equal(SYMBOL_ROLE_NONE, symbol_role_of("api:lua_call"));
	assert_int_equal(SYMBOL_ROLE_NONE, symbol_role_of(""));
}

/** As in a stream with addresses. */
static struct symbol_meaning parse_symbol(uint64_t address, const char *symbol)
{
	return symbol_parse_symbol(address, symbol_location_of(address, false), symbol,
				   strlen(symbol));
}

static void expect_meaning(uint64_t address, const char *symbol, enum format_kind kind,
			   const char *name)
{
	struct symbol_meaning meaning = parse_symbol(address, symbol);

	assert_false(meaning.trigger);
	assert_int_equal(kind, meaning.kind);
	assert_int_equal(strlen(name), meaning.name_len);
	assert_memory_equal(name, meaning.name, meaning.name_len);
}

static void test_meanings(void **state)
{
	struct symbol_meaning meaning;

	(void)state;
	expect_meaning(0x401000, "main", FORMAT_KIND_NATIVE, "main");
	expect_meaning(0x401000, "api:main", FORMAT_KIND_NATIVE, "api:main");
	expect_meaning(0x401000, "[vdso]", FORMAT_KIND_NATIVE, "[vdso]");
	expect_meaning(0x401000, "work [C]", FORMAT_KIND_CFUNC, "work");
	expect_meaning(5, "api:lua_call [C]", FORMAT_KIND_CFUNC, "lua_call");
	expect_meaning(5, "api:lua_call", FORMAT_KIND_NATIVE, "lua_call");
	expect_meaning(5, "string.gsub", FORMAT_KIND_BUILTIN, "string.gsub");
	expect_meaning(5, "[gc]", FORMAT_KIND_PSEUDO, "[gc]");
	expect_meaning(5, "[gc sweep string]", FORMAT_KIND_PSEUDO, "[gc sweep string]");
	expect_meaning(5, "[jit exit 12/3]", FORMAT_KIND_PSEUDO, "[jit exit 12/3]");
	expect_meaning(5, "[trace x]", FORMAT_KIND_PSEUDO, "[trace x]");
	expect_meaning(5, "nginx [4711]", FORMAT_KIND_PROCESS, "nginx [4711]");
	expect_meaning(5, " [1]", FORMAT_KIND_PROCESS, " [1]");
	expect_meaning(5, "nginx [x]", FORMAT_KIND_BUILTIN, "nginx [x]");
	expect_meaning(5, "nginx []", FORMAT_KIND_BUILTIN, "nginx []");
	expect_meaning(5, "1]", FORMAT_KIND_BUILTIN, "1]");
	expect_meaning(5, "]", FORMAT_KIND_BUILTIN, "]");
	expect_meaning(0x401000, "nginx [4711]", FORMAT_KIND_NATIVE, "nginx [4711]");
	expect_meaning(5, "nginx x:1 [4711]", FORMAT_KIND_PROCESS, "nginx x:1 [4711]");
	expect_meaning(5, "trace 7 x [4711]", FORMAT_KIND_PROCESS, "trace 7 x [4711]");
	expect_meaning(5, "trace x", FORMAT_KIND_BUILTIN, "trace x");
	expect_meaning(5, "trace 7x:1", FORMAT_KIND_BUILTIN, "trace 7x:1");
	expect_meaning(5, "trace ", FORMAT_KIND_BUILTIN, "trace ");
	expect_meaning(5, "[trace ]", FORMAT_KIND_PSEUDO, "[trace ]");
	expect_meaning(5, "trace 7", FORMAT_KIND_TRACE, "");
	expect_meaning(5, "[trace 7]", FORMAT_KIND_TRACE, "");
	expect_meaning(5, "trace 7 @ a:b.lua:12", FORMAT_KIND_TRACE, "a:b.lua");
	expect_meaning(5, "trace 7 =x:12", FORMAT_KIND_TRACE, "=x");
	expect_meaning(5, "[trace 7 @a:b.lua:12]", FORMAT_KIND_TRACE, "@a:b.lua");
	/* A file that begins with a blank, as the first version wrote it. */
	expect_meaning(5, "[trace 7 @ b.lua:12]", FORMAT_KIND_TRACE, "@ b.lua");
	expect_meaning(0x401000, "trace 7", FORMAT_KIND_NATIVE, "trace 7");
	meaning = parse_symbol(5, "trace 65535 @ a.lua:-1");
	assert_int_equal(65535, meaning.trace);
	assert_int_equal(-1, meaning.line);
	assert_true(meaning.file);
	assert_false(parse_symbol(5, "trace 7 =x:12").file);
	meaning = parse_symbol(5, "[trace 7 @a.lua:-1]");
	assert_int_equal(7, meaning.trace);
	assert_int_equal(-1, meaning.line);
	assert_true(parse_symbol(1, SYMBOL_TRIGGER).trigger);
	assert_false(parse_symbol(2, SYMBOL_TRIGGER).trigger);
}

/** What numbers stand for, and what the addresses of the first version do. */
static void test_locations(void **state)
{
	static const struct {
		uint64_t first, last;
		enum symbol_location location;
	} numbers[] = {
		{ 2, 511, SYMBOL_LOCATION_NAME },
		{ 512, 12287, SYMBOL_LOCATION_FUNCTION },
		{ 12288, 16383, SYMBOL_LOCATION_COMPILED },
		{ 16384, 65535, SYMBOL_LOCATION_NAME },
		{ 65536, (1 << 20) - 1, SYMBOL_LOCATION_FUNCTION },
		{ 1 << 20, (1 << 21) - 1, SYMBOL_LOCATION_COMPILED },
		{ 1 << 21, ((uint64_t)1 << 51) - 1, SYMBOL_LOCATION_FUNCTION },
		{ (uint64_t)1 << 51, ((uint64_t)1 << 52) - 1, SYMBOL_LOCATION_NAME },
		{ (uint64_t)1 << 52, ((uint64_t)1 << 53) - 1, SYMBOL_LOCATION_COMPILED },
	}, addresses[] = {
		{ 2, 65535, SYMBOL_LOCATION_NAME },
		{ 65536, ((uint64_t)1 << 52) + ((uint64_t)1 << 40) - 1, SYMBOL_LOCATION_FUNCTION },
		{ ((uint64_t)1 << 52) + ((uint64_t)1 << 40), ((uint64_t)1 << 53) - 1,
		  SYMBOL_LOCATION_COMPILED },
		{ (uint64_t)1 << 53, UINT64_MAX, SYMBOL_LOCATION_FUNCTION },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(numbers[i].location, symbol_location_of(numbers[i].first, true));
		assert_int_equal(numbers[i].location, symbol_location_of(numbers[i].last, true));
	}
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		assert_int_equal(addresses[i].location,
				 symbol_location_of(addresses[i].first, false));
		assert_int_equal(addresses[i].location,
				 symbol_location_of(addresses[i].last, false));
	}
}

static void expect_mark(const char *name, size_t name_len, uint32_t trace, bool approximate)
{
	struct label_mark mark = { 0 };
	size_t len = 0;

	assert_true(symbol_parse_mark(name, strlen(name), &len, &mark));
	assert_int_equal(name_len, len);
	assert_true(mark.compiled);
	assert_int_equal(trace, mark.trace);
	assert_int_equal(approximate, mark.approximate);
}

static void test_marks(void **state)
{
	static const char *const wrong[] = {
		"",	      "]",	     "f",	   "trace 1]",
		"[trace ]",   "[trace ~]",   "[trace 1",   "[trace 1x]",
		"[trace 1~]", "[trace ~~1]", "[trace -1]", "[trace 4294967296]",
		"[trace 1] ", "[trace1]",    "[gc]",	   "[trace 99999999999999999999]"
	};
	struct label_mark mark = { .trace = 5 };
	struct format_text text = { 0 };
	size_t len = 7;

	(void)state;
	expect_mark("[trace 7]", 0, 7, false);
	expect_mark("f[trace ~4294967295]", 1, UINT32_MAX, true);
	expect_mark("f[trace 1][trace 0]", 10, 0, false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(symbol_parse_mark(wrong[i], strlen(wrong[i]), &len, &mark));
	assert_int_equal(7, len);
	assert_int_equal(5, mark.trace);
	symbol_add_mark(&text, &mark);
	mark.approximate = true;
	symbol_add_mark(&text, &mark);
	assert_string_equal("[trace 5][trace ~5]", text.bytes);
	format_text_deinit(&text);
}

static void test_lua_lines(void **state)
{
	int64_t line = 0;

	(void)state;
	assert_true(symbol_match_lua("a b:12", 6, "a\nb", 3, &line));
	assert_int_equal(12, line);
	assert_false(symbol_match_lua("a b:12", 6, "a\nc", 3, &line));
	assert_false(symbol_match_lua("a b:", 4, "a\nb", 3, &line));
	assert_false(symbol_match_lua("a b:1x", 6, "a\nb", 3, &line));
	assert_false(symbol_match_lua("ab", 2, "a", 1, &line));
	assert_false(symbol_match_lua("a:123456789012345678901234", 26, "a", 1, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_addrmap),
		cmocka_unit_test(test_addrmap_descending),
		cmocka_unit_test(test_intern),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_shown_text),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_lua_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
