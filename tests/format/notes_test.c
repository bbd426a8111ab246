/* SPDX-License-Identifier: MIT */
/* What is said of a recording stands in each form that has a place for it, whatever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/writer.h"

/** @param account NULL: nothing is said. @return The file; the caller frees it. */
static char *recorded(const char *form, const char *notes)
{
	const struct format_options options = { .period_ns = 1000000 };
	const struct format_function function = {
		.kind = FORMAT_KIND_LUA, .name = "work", .source = "@app.lua", .first_line = 7
	};
	const struct format_writer_ops *ops = format_writer_find(form);
	struct format_functions *functions = format_functions_create();
	struct format_frame frame = { .line = 8 };
	const struct format_sample sample = { .frames = &frame, .frame_count = 1, .weight = 1 };
	struct format_sink *sink;
	struct failure why;
	FILE *file = tmpfile();
	char *text;
	long len;
	void *self;

	assert_non_null(file);
	assert_non_null(ops);
	assert_int_equal(0, format_functions_add(functions, &function, &frame.function, &why));
	assert_int_equal(0, format_sink_create(dup(fileno(file)), &sink, &why));
	assert_int_equal(0, ops->open(sink, functions, &options, &self, &why));
	assert_int_equal(0, ops->sample(self, &sample, &why));
	if (notes)
		assert_int_equal(0, ops->notes(self, notes, &why));
	assert_int_equal(0, ops->commit(self, true, &why));
	ops->close(self);
	format_sink_destroy(sink);
	format_functions_destroy(functions);

	assert_int_equal(0, fseek(file, 0, SEEK_END));
	len = ftell(file);
	rewind(file);
	text = calloc(1, (size_t)len + 1);
	assert_non_null(text);
	assert_int_equal((size_t)len, fread(text, 1, (size_t)len, file));
	fclose(file);
	return text;
}

static void check(const char *form, const char *notes, const char *wanted, bool is_there)
{
	char *text = recorded(form, notes);

	if (!strstr(text, wanted) == is_there)
		fail_msg("%s: %s: %s in\n%.4000s", form, is_there ? "no" : "has", wanted, text);
	free(text);
}

static void test_all_lines(void **state)
{
	static const char notes[] = "ljprof: ticks 6\nljprof: missed 0\n";

	(void)state;
	check("callgrind", notes, "desc: ljprof: ticks 6\ndesc: ljprof: missed 0\n", true);
	check("svg", notes, "<desc>ljprof: ticks 6\nljprof: missed 0\n</desc>", true);
	check("html", notes, "\"comments\":[\"ljprof: ticks 6\",\"ljprof: missed 0\"]", true);
	check("trace-event", notes, "\"comments\":[\"ljprof: ticks 6\",\"ljprof: missed 0\"]",
	      true);
	check("firefox", notes,
	      "\"extra\":[{\"label\":\"Recording\",\"entries\":["
	      "{\"label\":\"Comment 1\",\"format\":\"string\",\"value\":\"ljprof: ticks 6\"},"
	      "{\"label\":\"Comment 2\",\"format\":\"string\",\"value\":\"ljprof: missed 0\"}]}]",
	      true);
}

/* Others' profiles have comments, too. */
static void test_hostile_lines(void **state)
{
	static const char notes[] = "\n\n</script><b>&\"\xff\x01:\n\nno line feed";

	(void)state;
	check("callgrind", notes, "desc: Comment: </script>", true);
	check("callgrind", notes, "desc: Comment: no line feed\n", true);
	check("svg", notes,
	      "<desc>&lt;/script&gt;&lt;b&gt;&amp;&quot;\xef\xbf\xbd\xef\xbf\xbd:\n"
	      "no line feed\n</desc>",
	      true);
	check("html", notes, "\"comments\":[\"\\u003c\\/script\\u003e\\u003cb\\u003e\\u0026\\\"",
	      true);
	check("html", notes, "</script><b>", false);
	check("trace-event", notes, ",\"no line feed\"]", true);
	check("firefox", notes, "\"value\":\"no line feed\"}]}]", true);
	check("firefox", notes, "\x01", false);
}

static void test_nothing_said(void **state)
{
	(void)state;
	check("callgrind", NULL, "desc:", false);
	check("svg", NULL, "<desc>", false);
	check("html", NULL, "\"comments\":[]", true);
	check("trace-event", NULL, "\"comments\":[]", true);
	check("firefox", NULL, "\"extra\"", false);
	check("firefox", "\n", "\"entries\":[]", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_lines),
		cmocka_unit_test(test_hostile_lines),
		cmocka_unit_test(test_nothing_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
