/* SPDX-License-Identifier: MIT */
/* Variables as text and as JSON: what a value holds harms neither a terminal nor a reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json.h>
#include <math.h>

#include "cli/dump/dump_values.h"

static struct luastate_value string(const char *bytes, size_t len, uint64_t size)
{
	return (struct luastate_value){
		.type = LUASTATE_VALUE_STRING, .text = bytes, .text_bytes = len, .size = size
	};
}

static struct luastate_value number(double value)
{
	return (struct luastate_value){ .type = LUASTATE_VALUE_NUMBER, .number = value };
}

static void expect_text(const struct luastate_value *value, const char *text)
{
	struct format_text got = { 0 };

	dump_add_value(&got, value);
	assert_false(got.broken);
	assert_string_equal(text, got.bytes);
	format_text_deinit(&got);
}

/* The value's member of what is printed as JSON, read again. */
static struct json_object *parse(const struct luastate_value *value, struct json_object **ret_root)
{
	const struct luastate_variable variable = {
		.kind = LUASTATE_LOCAL, .name = "name\x1b[2J\xff", .index = 1, .value = *value
	};
	const struct luastate_variables variables = { .items = &variable, .count = 1 };
	struct json_object *root = dump_make_variables(&variables), *list, *item;
	const char *text = json_object_to_json_string(root);

	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20);
	*ret_root = json_tokener_parse(text);
	json_object_put(root);
	assert_non_null(*ret_root);
	assert_true(json_object_object_get_ex(*ret_root, "list", &list));
	item = json_object_array_get_idx(list, 0);
	assert_string_equal("name\\x1b[2J\\xff",
			    json_object_get_string(json_object_object_get(item, "name")));
	return json_object_object_get(item, "value");
}

static void expect_json(const struct luastate_value *value, const char *key, const char *text)
{
	struct json_object *root, *object = parse(value, &root);

	assert_string_equal(text, json_object_get_string(json_object_object_get(object, key)));
	json_object_put(root);
}

/* ---- Strings ---------------------------------------------------------------------------- */

static const struct {
	const char *bytes;
	size_t len;
	const char *text, *json;
} strings[] = {
	{ "plain", 5, "\"plain\"", "plain" },
	{ "", 0, "\"\"", "" },
	{ "gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"", "gr\xc3\xbc\xc3\x9f" },
	{ "a\"b\\c", 5, "\"a\\\"b\\\\c\"", "a\"b\\c" },
	{ "line\nnext\t", 10, "\"line\\nnext\\t\"", "line\\nnext\\t" },
	{ "a\0b", 3, "\"a\\x00b\"", "a\\x00b" },
	{ "\x1b[31mred\x7f", 9, "\"\\x1b[31mred\\x7f\"", "\\x1b[31mred\\x7f" },
	{ "\x9b"
	  "2J",
	  3, "\"\\x9b2J\"", "\\x9b2J" },
	{ "\xc2\x9b"
	  "2J",
	  4, "\"\\u{9b}2J\"", "\\u{9b}2J" },
	{ "\xe2\x80\xae"
	  "abc",
	  6, "\"\\u{202e}abc\"", "\\u{202e}abc" },
	{ "\xe2\x81\xa6"
	  "abc",
	  6, "\"\\u{2066}abc\"", "\\u{2066}abc" },
	{ "\xff\xfe\xc0\x80", 4, "\"\\xff\\xfe\\xc0\\x80\"", "\\xff\\xfe\\xc0\\x80" },
	{ "\xed\xa0\x80", 3, "\"\\xed\\xa0\\x80\"", "\\xed\\xa0\\x80" },
	{ "\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80" },
};

static void test_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		const struct luastate_value value =
			string(strings[i].bytes, strings[i].len, strings[i].len);

		expect_text(&value, strings[i].text);
		expect_json(&value, "value", strings[i].json);
	}
}

/* No part of a character is shown where a string was cut. */
static void test_cut_strings(void **state)
{
	struct luastate_value value = string("ab\xe2\x82\xac", 4, 1000);
	struct json_object *root, *object;

	(void)state;
	expect_text(&value, "\"ab\"... (1000 bytes)");
	value.text_bytes = 5;
	expect_text(&value, "\"ab\xe2\x82\xac\"... (1000 bytes)");
	value = string("ab\xff", 3, 4);
	expect_text(&value, "\"ab\"... (4 bytes)");
	object = parse(&value, &root);
	assert_true(json_object_get_boolean(json_object_object_get(object, "truncated")));
	assert_int_equal(4, json_object_get_int(json_object_object_get(object, "bytes")));
	json_object_put(root);
}

/* ---- Numbers ---------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	static const struct {
		double number;
		const char *text, *json;
	} numbers[] = {
		{ 1, "1", "1" },
		{ 0.1, "0.1", "0.10000000000000001" },
		{ 1e15, "1e+15", "1000000000000000" },
		{ -0.0, "-0", "-0.0" },
		{ INFINITY, "inf", "inf" },
		{ -INFINITY, "-inf", "-inf" },
		{ NAN, "nan", "nan" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct luastate_value value = number(numbers[i].number);

		expect_text(&value, numbers[i].text);
		expect_json(&value, "value", numbers[i].json);
	}
}

static void test_cdata(void **state)
{
	struct luastate_value value = { .type = LUASTATE_VALUE_CDATA,
					.address = 0x1000,
					.text = "int64_t",
					.size = 8,
					.cdata_kind = LUASTATE_CDATA_INTEGER,
					.integer = INT64_MIN };

	(void)state;
	expect_text(&value, "-9223372036854775808LL");
	expect_json(&value, "value", "-9223372036854775808");
	value.text = "uint64_t";
	value.cdata_kind = LUASTATE_CDATA_UNSIGNED;
	value.integer = -1;
	expect_text(&value, "18446744073709551615ULL");
	expect_json(&value, "value", "18446744073709551615");
	value.text = "struct evil\x1b]0;title\a";
	value.cdata_kind = LUASTATE_CDATA_OPAQUE;
	expect_text(&value, "cdata<struct evil\\x1b]0;title\\a> 0x1000 (8 bytes)");
	expect_json(&value, "ctype", "struct evil\\x1b]0;title\\a");
	value.text = "int";
	value.size = 4;
	value.cdata_kind = LUASTATE_CDATA_INTEGER;
	expect_text(&value, "cdata<int> -1");
	value.text = NULL;
	value.cdata_kind = LUASTATE_CDATA_OPAQUE;
	expect_text(&value, "cdata<?> 0x1000 (4 bytes)");
}

/* ---- Tables and functions --------------------------------------------------------------- */

static void test_tables(void **state)
{
	const struct luastate_value keys[] = {
		{ .type = LUASTATE_VALUE_INTEGER, .integer = 1 },
		{ .type = LUASTATE_VALUE_INTEGER, .integer = 3 },
		string("name", 4, 4),
		string("no name", 7, 7),
	};
	const struct luastate_value values[] = { number(10),
						 { .type = LUASTATE_VALUE_NIL },
						 { .type = LUASTATE_VALUE_BOOLEAN,
						   .boolean = true },
						 { .type = LUASTATE_VALUE_UNREADABLE } };
	struct luastate_table table = { .count = 9,
					.cut = LUASTATE_TABLE_ENTRIES,
					.keys = keys,
					.values = values,
					.entry_count = 4 };
	const struct luastate_value value = { .type = LUASTATE_VALUE_TABLE,
					      .address = 0x40,
					      .table = &table };

	(void)state;
	expect_text(&value, "table 0x40 (9 entries) {10, [3] = nil, name = true, "
			    "[\"no name\"] = <unreadable>, ...}");
	expect_json(&value, "truncated", "entries");
	table = (struct luastate_table){ .count = 1, .cut = LUASTATE_TABLE_CYCLE };
	expect_text(&value, "table 0x40 (1 entry, shown around this)");
	table = (struct luastate_table){ .has_metatable = true };
	expect_text(&value, "table 0x40 (0 entries, metatable) {}");
	table = (struct luastate_table){ .cut = LUASTATE_TABLE_INCONSISTENT, .is_count_cut = true };
	expect_text(&value, "table 0x40 (0 or more entries, not all readable) {...}");
}

static void test_functions(void **state)
{
	struct luastate_value value = { .type = LUASTATE_VALUE_FUNCTION,
					.chunkname = "@dir/file.lua",
					.firstline = 12 };

	(void)state;
	expect_text(&value, "function <dir/file.lua:12>");
	value.text = "work";
	value.chunkname = "return\n\x1b[2J";
	expect_text(&value, "function work <[string \"return\\n\\x1b[2J\"]:12>");
	expect_json(&value, "chunk", "return\\n\\x1b[2J");
	value = (struct luastate_value){ .type = LUASTATE_VALUE_BUILTIN, .text = "string.gsub" };
	expect_text(&value, "function string.gsub (built-in)");
	value = (struct luastate_value){ .type = LUASTATE_VALUE_C_FUNCTION, .code = 0x5000 };
	expect_text(&value, "function (C, 0x5000)");
}

/* ---- Variables -------------------------------------------------------------------------- */

static void test_lines(void **state)
{
	static char large[100000];
	const struct luastate_variable items[] = {
		{ .kind = LUASTATE_PARAMETER, .name = "n\x1b", .index = 1, .value = number(1) },
		{ .kind = LUASTATE_LOCAL, .name = "(for index)", .index = 2 },
		{ .kind = LUASTATE_VARARG, .name = "(*vararg)", .index = 1, .value = number(2) },
		{ .kind = LUASTATE_UPVALUE, .name = "", .index = 3, .value = number(3) },
		{ .kind = LUASTATE_LOCAL,
		  .name = "large",
		  .index = 3,
		  .value = string(large, sizeof(large), sizeof(large)) },
	};
	const struct luastate_variables variables = {
		.items = items, .count = 5, .is_stripped = true, .is_truncated = true
	};
	static const char *const lines[] = { "  n\\x1b = 1\n", "  (for index) = <unavailable>\n",
					     "  vararg 1 = 2\n", "  upvalue 3 = 3\n" };
	char line[2000];
	FILE *file = tmpfile();

	(void)state;
	memset(large, 0x1b, sizeof(large));
	assert_non_null(file);
	dump_print_variables(file, &variables, 2);
	rewind(file);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_non_null(fgets(line, sizeof(line), file));
		assert_string_equal(lines[i], line);
	}
	assert_non_null(fgets(line, sizeof(line), file));
	assert_true(strlen(line) < 1100 && line[strlen(line) - 1] == '\n');
	assert_non_null(fgets(line, sizeof(line), file));
	assert_non_null(strstr(line, "stripped"));
	assert_non_null(fgets(line, sizeof(line), file));
	assert_non_null(strstr(line, "more variables"));
	assert_null(fgets(line, sizeof(line), file));
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings), cmocka_unit_test(test_cut_strings),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_cdata),
		cmocka_unit_test(test_tables),	cmocka_unit_test(test_functions),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
