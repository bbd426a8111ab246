/* SPDX-License-Identifier: MIT */
/* Stacks as text and as JSON, with names that a terminal or a reader of JSON would choke on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <json.h>

#include "cli/dump/dump.h"

/** A text that frames may own. */
#define TEXT(string) ((char[]){ string })

static char *text;

static int teardown(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static const char *print(struct daemon_frame *frames, size_t count, enum daemon_outcome outcome)
{
	const struct daemon_stack stack = { .frames = frames, .count = count, .outcome = outcome };
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	dump_print_frames(file, &stack, 2);
	assert_int_equal(0, fclose(file));
	return text;
}

static void test_kinds(void **state)
{
	struct daemon_frame frames[] = {
		{ .kind = FORMAT_KIND_PSEUDO, .name = TEXT("[gc sweep]") },
		{ .kind = FORMAT_KIND_NATIVE, .name = TEXT("poll"), .source = TEXT("libc.so.6") },
		{ .kind = FORMAT_KIND_CFUNC, .name = TEXT("wait"), .source = TEXT("host") },
		{ .kind = FORMAT_KIND_LUA,
		  .name = TEXT("burn"),
		  .source = TEXT("@a.lua"),
		  .line = 14,
		  .first_line = 12,
		  .trace = 7,
		  .approximate = true },
		{ .kind = FORMAT_KIND_LUA, .source = TEXT("=one"), .line = 5, .first_line = 3 },
		{ .kind = FORMAT_KIND_BUILTIN, .name = TEXT("pcall") },
		{ .kind = FORMAT_KIND_TRACE,
		  .source = TEXT("@a.lua"),
		  .first_line = 9,
		  .pc = 12,
		  .trace = 12 },
		{ .kind = FORMAT_KIND_LUA,
		  .name = TEXT("main chunk"),
		  .source = TEXT("return 1\nreturn 2"),
		  .line = 2 },
		{ .kind = FORMAT_KIND_LUA },
	};

	(void)state;
	assert_string_equal("  #0  -         [gc sweep]\n"
			    "  #1  native    poll              libc.so.6\n"
			    "  #2  C         wait              host\n"
			    "  #3  Lua       burn              a.lua:14  [trace ~7]\n"
			    "  #4  Lua       function <one:3>  one:5\n"
			    "  #5  built-in  pcall\n"
			    "  #6  trace     trace 12          a.lua:9\n"
			    "  #7  Lua       main chunk        [string \"return 1\"]:2\n"
			    "  #8  Lua       ?\n",
			    print(frames, sizeof(frames) / sizeof(frames[0]), DAEMON_FULL));
}

static void test_partial(void **state)
{
	(void)state;
	assert_string_equal("  partial: the VM was in an inconsistent state\n",
			    print(NULL, 0, DAEMON_INCONSISTENT));
}

/* A name as long as can be, escapes, a byte that is no UTF-8, and one that turns the direction. */
static void test_hostile_text(void **state)
{
	char name[1025], source[1025];
	struct daemon_frame frames[] = {
		{ .kind = FORMAT_KIND_LUA,
		  .name = TEXT("\033]0;x\007\xff\xe2\x80\xae"),
		  .source = TEXT("=\r\n\033[2J"),
		  .line = 1 },
		{ .kind = FORMAT_KIND_LUA, .name = name, .source = source, .line = UINT32_MAX },
		{ .kind = FORMAT_KIND_NATIVE, .name = TEXT(""), .source = TEXT("\x9b") },
		{ .kind = FORMAT_KIND_LUA, .source = TEXT(""), .first_line = INT64_MAX },
		{ .kind = FORMAT_KIND_LUA, .source = TEXT("@"), .first_line = -1, .line = 3 },
	};
	unsigned lines = 0;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	memset(source, '\t', sizeof(source) - 1);
	name[sizeof(name) - 1] = source[sizeof(source) - 1] = '\0';
	print(frames, sizeof(frames) / sizeof(frames[0]), DAEMON_FULL);
	for (const char *at = text; *at; at++) {
		assert_true(*at == '\n' || (*at >= ' ' && *at != 127));
		lines += *at == '\n';
	}
	assert_int_equal(sizeof(frames) / sizeof(frames[0]), lines);
}

static struct json_object *frame_of(struct json_object *stack, size_t index)
{
	struct json_object *frames;

	assert_true(json_object_object_get_ex(stack, "frames", &frames));
	return json_object_array_get_idx(frames, index);
}

static void expect_text(struct json_object *object, const char *key, const char *wanted)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(object, key, &value));
	if (wanted)
		assert_string_equal(wanted, json_object_get_string(value));
	else
		assert_null(value);
}

static void test_json(void **state)
{
	struct daemon_frame frames[] = {
		{ .kind = FORMAT_KIND_LUA,
		  .name = TEXT("\"\\\xff\n"),
		  .source = TEXT("@a.lua"),
		  .line = 14,
		  .first_line = 12,
		  .trace = 7 },
		{ .kind = FORMAT_KIND_NATIVE, .source = TEXT("libc.so.6"), .pc = UINT64_MAX },
	};
	const struct daemon_stack stack = { .frames = frames,
					    .count = 2,
					    .outcome = DAEMON_TRUNCATED,
					    .state = FORMAT_STATE_TRACE,
					    .trace = 7,
					    .G = 0x1000 };
	struct json_object *object = json_object_new_object();

	(void)state;
	dump_add_frames(object, &stack);
	expect_text(object, "global_state", "0x1000");
	expect_text(object, "coroutine", NULL);
	expect_text(object, "state", "TRACE");
	expect_text(object, "outcome", "truncated");
	expect_text(frame_of(object, 0), "kind", "lua");
	expect_text(frame_of(object, 0), "name", "\"\\? ");
	expect_text(frame_of(object, 0), "chunk", "@a.lua");
	expect_text(frame_of(object, 0), "line", "14");
	expect_text(frame_of(object, 0), "trace", "7");
	expect_text(frame_of(object, 0), "approximate", "false");
	expect_text(frame_of(object, 1), "name", NULL);
	expect_text(frame_of(object, 1), "module", "libc.so.6");
	expect_text(frame_of(object, 1), "address", "0xffffffffffffffff");
	json_object_put(object);
}

static void test_calls(void **state)
{
	(void)state;
	assert_string_equal("read", daemon_call_name(SYS_read));
	assert_string_equal("getpid", daemon_call_name(SYS_getpid));
	assert_null(daemon_call_name(-1));
	assert_null(daemon_call_name(INT64_MAX));
}

int main(void)
{
#define FRAMES_TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		FRAMES_TEST(test_kinds), FRAMES_TEST(test_partial), FRAMES_TEST(test_hostile_text),
		FRAMES_TEST(test_json),	 FRAMES_TEST(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
