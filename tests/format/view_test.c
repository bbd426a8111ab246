/* SPDX-License-Identifier: MIT */
/* What views leave of call chains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/live.h"
#include "format/profile/profile_internal.h"
#include "format/report.h"
#include "format/view/reduce.h"

/** A frame: its name, and what it is. */
struct frame {
	const char *name;
	enum format_kind kind;
	const char *source; /* of native code its module, of a Lua function its chunk */
};

#define NATIVE(name, module)                     \
	{                                        \
		name, FORMAT_KIND_NATIVE, module \
	}
#define LUA(name)                               \
	{                                       \
		name, FORMAT_KIND_LUA, "@a.lua" \
	}
#define BUILTIN(name)                           \
	{                                       \
		name, FORMAT_KIND_BUILTIN, NULL \
	}
#define CFUNC(name)                           \
	{                                     \
		name, FORMAT_KIND_CFUNC, NULL \
	}
#define VM(name, module)                     \
	{                                    \
		name, FORMAT_KIND_VM, module \
	}
#define MARK(name)                             \
	{                                      \
		name, FORMAT_KIND_PSEUDO, NULL \
	}

enum { FRAMES_MAX = 16 };

/** A chain, root first, and what the views of a program and of no native code leave of it. */
struct example {
	struct frame frames[FRAMES_MAX];
	const char *program, *none;
};

static const struct example examples[] = {
	/* All before the first Lua function is one frame; what LuaJIT and libc do is its caller's.
	 */
	{ { NATIVE("_start", "/usr/bin/luajit"), NATIVE("__libc_start_main", "libc.so.6"),
	    NATIVE("main", "/usr/bin/luajit"), NATIVE("lua_cpcall", "/usr/bin/luajit"),
	    CFUNC("luajit+0x92c0"), LUA("main chunk"), LUA("encode"), BUILTIN("string.format"),
	    NATIVE("luajit+0x18d80", "/usr/bin/luajit"), NATIVE("memcpy", "libc.so.6") },
	  "luajit: main;main chunk;encode;string.format",
	  "main chunk;encode;string.format" },
	{ { NATIVE("main", "nginx"), NATIVE("ngx_http_lua_run_thread", "nginx"),
	    NATIVE("lua_resume", "libluajit-5.1.so.2"), LUA("content_by_lua"), MARK("[gc sweep]"),
	    NATIVE("libluajit-5.1.so.2+0x123", "libluajit-5.1.so.2") },
	  "nginx: ngx_http_lua_run_thread;content_by_lua;[gc sweep]",
	  "content_by_lua;[gc sweep]" },
	/* A program's own code stays, up to where it enters LuaJIT. */
	{ { NATIVE("main", "app"), LUA("f"), CFUNC("app_query"), NATIVE("query", "app"),
	    NATIVE("memcpy", "libc.so.6") },
	  "app: main;f;app_query;query;memcpy",
	  "f;app_query" },
	{ { NATIVE("main", "app"), LUA("f"), CFUNC("app_push"), NATIVE("push", "app"),
	    VM("lua_pushlstring", "app"), VM("lj_str_new", "app"), NATIVE("memcpy", "libc.so.6") },
	  "app: main;f;app_push;push",
	  "f;app_push" },
	{ { NATIVE("main", "app"), LUA("f"), CFUNC("app_call"), NATIVE("call", "app"),
	    VM("lua_pcall", "app"), LUA("g"), VM("lj_gc_step", "app") },
	  "app: main;f;app_call;call;g",
	  "f;app_call;g" },
	/* Code without a name is its caller's. */
	{ { NATIVE("main", "app"), NATIVE("app+0x12", "app"), LUA("f"), CFUNC("cjson.decode"),
	    NATIVE("cjson.so+0x38c0", "/usr/lib/cjson.so"), NATIVE("strtod", "libc.so.6") },
	  "app: main;f;cjson.decode;strtod",
	  "f;cjson.decode" },
	{ { NATIVE("app+0x12", "app"), NATIVE("app+0x34", "app"), LUA("f"), CFUNC("c"),
	    NATIVE("app+0x56", "app"), VM("lua_call", "app"), NATIVE("app+0x78", "app") },
	  "app;f;c",
	  "f;c" },
	{ { NATIVE("main", "app"), LUA("f"), CFUNC("c"), NATIVE("work", "app"),
	    NATIVE("libc.so.6+0x26000", "libc.so.6"), NATIVE("memcpy", "libc.so.6") },
	  "app: main;f;c;work;memcpy",
	  "f;c" },
	{ { NATIVE("app+0x12", "app"), NATIVE("app+0x34", "app") }, "[app]", "[app]" },
	/* A C function without a name is one of its module. */
	{ { NATIVE("main", "app"), LUA("f"), CFUNC("cjson.so+0x38c0"),
	    NATIVE("strtod", "libc.so.6") },
	  "app: main;f;[C function: cjson];strtod",
	  "f;[C function: cjson]" },
	{ { NATIVE("main", "app"),
	    LUA("f"),
	    { "app+0x38c0", FORMAT_KIND_CFUNC, "app" },
	    VM("lua_call", "app"),
	    LUA("g") },
	  "app: main;f;[C function: app];g",
	  "f;[C function: app];g" },
	/* Functions called through the FFI are below LuaJIT's or compiled code. */
	{ { NATIVE("main", "app"), LUA("f"), VM("lj_ccall_func", "app"),
	    NATIVE("deflate", "libz.so.1"), NATIVE("memcpy", "libc.so.6") },
	  "app: main;f;deflate;memcpy",
	  "f" },
	/* Of an unknown module it may be the program's. */
	{ { NATIVE("main", NULL), LUA("f"), NATIVE("memcpy", NULL) }, "main;f;memcpy", "f" },
	{ { NATIVE("main", NULL), LUA("f"), CFUNC("c"), NATIVE("work", NULL) },
	  "main;f;c;work",
	  "f;c" },
	{ { NATIVE("main", NULL), LUA("f"), NATIVE("luajit+0x18d80", NULL),
	    NATIVE("libc.so.6+0x1", NULL) },
	  "main;f",
	  "f" },
	{ { NATIVE("main", NULL), NATIVE("app+0x12", NULL), LUA("f"), CFUNC("app+0x34"),
	    NATIVE("app+0x56", NULL) },
	  "app;f;[C function: app]",
	  "f;[C function: app]" },
	{ { NATIVE("app+0x12", NULL), NATIVE("libz.so.1+0x34", NULL) },
	  "[native: libz]",
	  "[native: libz]" },
	/* Without Lua there is one row a module. */
	{ { NATIVE("_start", "nginx"), NATIVE("main", "nginx"), NATIVE("poll", "libc.so.6") },
	  "[native: libc]",
	  "[native: libc]" },
	{ { NATIVE("_start", "nginx"), NATIVE("main", "nginx"), NATIVE("work", "nginx") },
	  "[nginx]",
	  "[nginx]" },
	{ { NATIVE("gettime", "[vdso]") }, "[native: vdso]", "[native: vdso]" },
	{ { NATIVE("main", NULL), NATIVE("work", NULL) }, "main;work", "[native]" },
	/* A C function that no Lua function called. */
	{ { NATIVE("main", "app"), VM("lua_pcall", "app"), CFUNC("pmain"), NATIVE("work", "app") },
	  "app: main;pmain;work",
	  "pmain" },
	/* What is not code stays. */
	{ { { "app [12]", FORMAT_KIND_PROCESS, NULL },
	    NATIVE("main", "app"),
	    LUA("f"),
	    NATIVE("lj_tab_get", "app"),
	    MARK("[stack incomplete]") },
	  "app [12];app: main;f;[stack incomplete]",
	  "app [12];f;[stack incomplete]" },
	{ { { "app [12]", FORMAT_KIND_PROCESS, NULL }, NATIVE("main", "app") },
	  "app [12];[app]",
	  "app [12];[app]" },
	{ { LUA("f") }, "f", "f" },
};

enum { EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

static size_t count_of(const struct example *example)
{
	size_t count = 0;

	while (count < FRAMES_MAX && example->frames[count].name)
		count++;
	return count;
}

static struct format_function function_of(const struct frame *frame)
{
	return (struct format_function){ .kind = frame->kind,
					 .name = frame->name,
					 .source = frame->source,
					 .first_line = frame->kind == FORMAT_KIND_LUA ? 7 : 0 };
}

/* ---- Profiles --------------------------------------------------------------------------- */

static void add(struct format_profile *profile, const struct example *example, uint64_t count)
{
	const struct profile_labels labels = { .pid = 1, .tid = 2, .state = FORMAT_STATE_GC + 1 };
	struct profile_frame frames[FRAMES_MAX] = { 0 };
	size_t frame_count = count_of(example);
	struct failure why;

	for (size_t i = 0; i < frame_count; i++) {
		const struct format_function function = function_of(&example->frames[i]);

		assert_int_equal(0, profile_add_function(profile, &function, NULL,
							 &frames[i].function, &why));
		frames[i].line = function.first_line ? 9 : 0;
	}
	timeline_set_next(&profile->timeline, profile->samples + 1, 0);
	profile->states[FORMAT_STATE_GC] += count;
	assert_int_equal(0, profile_add_sample(profile, frames, frame_count, &labels, count, &why));
}

static struct format_profile *make_profile(void)
{
	struct failure why;
	struct format_profile *profile = format_profile_create(&why);

	assert_non_null(profile);
	profile->kind = FORMAT_STREAM_SYSPROF;
	profile->period_ns = 1000;
	format_profile_keep_order(profile, FORMAT_ORDER_NEEDED);
	return profile;
}

/** @return The report as text; the caller frees it. */
static char *print(const struct format_profile *profile, const char *report,
		   const struct format_view *view)
{
	const struct format_report_options options = { .view = *view };
	struct failure why;
	char *text;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_int_equal(0, format_report_print(format_report_find(report), NULL, profile, &options,
						file, &why));
	assert_int_equal(0, fclose(file));
	return text;
}

/** The names of one folded chain, without locations and the count. */
static void strip(char *text)
{
	char *to = text;

	*strrchr(text, ' ') = '\0';
	for (const char *from = text; *from;) {
		if (strncmp(from, " (@a.lua:9)", 11) == 0)
			from += 11;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

static void expect_chain(const struct example *example, enum format_native native,
			 const char *expected)
{
	const struct format_view view = { .native = native };
	struct format_profile *profile = make_profile();
	char *text;

	add(profile, example, 3);
	text = print(profile, "folded", &view);
	strip(text);
	assert_string_equal(expected, text);
	free(text);
	format_profile_destroy(profile);
}

static void reduces_chains(void **state)
{
	(void)state;
	for (int i = 0; i < EXAMPLES; i++) {
		expect_chain(&examples[i], FORMAT_NATIVE_PROGRAM, examples[i].program);
		expect_chain(&examples[i], FORMAT_NATIVE_NONE, examples[i].none);
	}
}

static struct format_profile *make_all(void)
{
	struct format_profile *profile = make_profile();

	for (int i = 0; i < EXAMPLES; i++)
		add(profile, &examples[i], (uint64_t)i + 1);
	return profile;
}

/** Sum of the first column of a table. */
static uint64_t sum_of_self(const char *table)
{
	uint64_t sum = 0;

	table = strstr(table, "LOCATION\n");
	assert_non_null(table);
	for (table += strlen("LOCATION\n"); *table; table = strchr(table, '\n') + 1)
		sum += strtoul(table, NULL, 10);
	return sum;
}

static void keeps_sums(void **state)
{
	struct format_profile *profile = make_all();

	(void)state;
	for (int native = FORMAT_NATIVE_DEFAULT; native < FORMAT_NATIVE_COUNT; native++) {
		const struct format_view view = { .native = (enum format_native)native };
		char *text = print(profile, "top", &view);

		assert_int_equal(profile->samples, sum_of_self(text));
		free(text);
	}
	format_profile_destroy(profile);
}

static void keeps_everything_else(void **state)
{
	const struct format_view view = { .native = FORMAT_NATIVE_PROGRAM };
	struct format_profile *profile = make_all(), *viewed;
	struct timeline_cursor from = { 0 }, to = { 0 };
	struct failure why;

	(void)state;
	assert_int_equal(0, format_profile_view(profile, &view, &viewed, &why));
	assert_int_equal(profile->samples, viewed->samples);
	assert_int_equal(profile->period_ns, viewed->period_ns);
	assert_memory_equal(profile->states, viewed->states, sizeof(profile->states));
	while (timeline_next(&profile->timeline, &from)) {
		struct profile_sample sample;

		assert_true(timeline_next(&viewed->timeline, &to));
		assert_int_equal(from.us, to.us);
		assert_int_equal(from.count, to.count);
		sample = profile_sample(viewed, to.key);
		assert_int_equal(2, profile_labels(viewed, sample.labels)->tid);
	}
	assert_false(timeline_next(&viewed->timeline, &to));
	format_profile_destroy(viewed);
	format_profile_destroy(profile);
}

static void compile(regex_t *expression, const char *text)
{
	assert_int_equal(0, regcomp(expression, text, REG_EXTENDED | REG_NOSUB));
}

static void chooses_by_expressions(void **state)
{
	struct format_view view = { .native = FORMAT_NATIVE_PROGRAM };
	struct format_profile *profile = make_profile();
	regex_t one, other;
	char *text;

	(void)state;
	add(profile, &examples[0], 5);
	add(profile, &examples[1], 2);
	/* Frames that the view does not show count, too. */
	compile(&one, "^memcpy$");
	view.focus = &one;
	text = print(profile, "folded", &view);
	assert_string_equal(
		"luajit: main;main chunk (@a.lua:9);encode (@a.lua:9);string.format 5\n", text);
	free(text);
	view.focus = NULL;
	view.ignore = &one;
	text = print(profile, "folded", &view);
	assert_string_equal(
		"nginx: ngx_http_lua_run_thread;content_by_lua (@a.lua:9);[gc sweep] 2\n", text);
	free(text);
	regfree(&one);
	view.ignore = NULL;
	compile(&one, "string|encode");
	compile(&other, "main chunk|gc|encode");
	view.hide = &one;
	view.show = &other;
	text = print(profile, "folded", &view);
	assert_string_equal("[gc sweep] 2\nmain chunk (@a.lua:9) 5\n", text);
	free(text);
	view.show = NULL;
	regfree(&one);
	compile(&one, ".");
	text = print(profile, "folded", &view);
	assert_string_equal("[hidden] 7\n", text);
	free(text);
	regfree(&one);
	regfree(&other);
	format_profile_destroy(profile);
}

static void chooses_rows(void **state)
{
	struct format_report_options options = { .top = 2 };
	struct format_profile *profile = make_all();
	struct failure why;
	char *text;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(0, format_report_print(format_report_find("top"), NULL, profile, &options,
						file, &why));
	assert_int_equal(0, fclose(file));
	text[len - 1] = '\0';
	assert_ptr_equal(strchr(strchr(strstr(text, "LOCATION\n"), '\n') + 1, '\n'),
			 strrchr(text, '\n')); /* two lines follow */
	free(text);
	options = (struct format_report_options){ .minimum = 99 };
	file = open_memstream(&text, &len);
	assert_int_equal(0, format_report_print(format_report_find("top"), NULL, profile, &options,
						file, &why));
	assert_int_equal(0, fclose(file));
	assert_string_equal("LOCATION\n", strstr(text, "LOCATION\n"));
	free(text);
	format_profile_destroy(profile);
}

/* ---- Live ------------------------------------------------------------------------------- */

/** Count an example in a live view. */
static void add_live(struct format_live *live, const struct example *example, uint32_t weight)
{
	struct format_sample sample = { .pid = 1, .tid = 2, .weight = weight, .full = true };
	struct format_frame frames[FRAMES_MAX] = { 0 };
	struct failure why;

	sample.frames = frames;
	sample.frame_count = (uint32_t)count_of(example);
	sample.trace_function = FORMAT_NO_FUNCTION;
	for (uint32_t i = 0; i < sample.frame_count; i++) {
		const struct format_function function = function_of(&example->frames[i]);
		uint32_t id = (uint32_t)(&example->frames[i] - &examples[0].frames[0]);

		frames[sample.frame_count - 1 - i].function = id;
		assert_int_equal(0, format_live_function(live, id, &function, &why));
	}
	assert_int_equal(0, format_live_sample(live, &sample, &why));
}

/** @return The rows' own samples in all; @p ret_natives: rows of native code. */
static uint64_t sum_rows(const struct format_live *live, enum format_native native,
			 size_t *ret_natives)
{
	const struct format_live_query query = { .native = native };
	struct format_live_rows rows;
	struct failure why;
	uint64_t sum = 0;

	*ret_natives = 0;
	assert_int_equal(0, format_live_query(live, &query, &rows, &why));
	for (size_t i = 0; i < rows.count; i++) {
		sum += native == FORMAT_NATIVE_NONE ? rows.rows[i].count.guest
						    : rows.rows[i].count.self;
		*ret_natives += format_kind_is_native(rows.rows[i].kind);
	}
	format_live_rows_deinit(&rows);
	return sum;
}

static void counts_live(void **state)
{
	struct format_live *live;
	size_t natives, all;
	uint64_t samples = 0;
	struct failure why;

	(void)state;
	assert_int_equal(0, format_live_create(&(struct format_live_options){ 0 }, &live, &why));
	for (int i = 0; i < EXAMPLES; i++) {
		add_live(live, &examples[i], (uint32_t)i + 1);
		samples += (uint64_t)i + 1;
	}
	assert_int_equal(samples, sum_rows(live, FORMAT_NATIVE_ALL, &all));
	assert_int_equal(samples, sum_rows(live, FORMAT_NATIVE_PROGRAM, &natives));
	assert_in_range(natives, 1, all - 1);
	assert_int_equal(samples, sum_rows(live, FORMAT_NATIVE_NONE, &natives));
	assert_int_equal(0, natives);
	format_live_reset(live);
	assert_int_equal(0, sum_rows(live, FORMAT_NATIVE_PROGRAM, &natives));
	format_live_destroy(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reduces_chains),	 cmocka_unit_test(keeps_sums),
		cmocka_unit_test(keeps_everything_else), cmocka_unit_test(chooses_by_expressions),
		cmocka_unit_test(chooses_rows),		 cmocka_unit_test(counts_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
