/* SPDX-License-Identifier: MIT */
/* What the summary and --stats tell of compiled code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "cli/record/summary.h"

static char chunk[] = "@a.lua", foreign[] = "@\xff\xc3\xa4\xe2\x82.lua";

static struct daemon_trace traces[] = {
	{ .pid = 7,
	  .number = 1,
	  .chunk = chunk,
	  .line = 12,
	  .samples = { [FORMAT_COMPILED_EXACT] = 3 } },
	{ .pid = 7,
	  .number = 65535,
	  .chunk = foreign,
	  .line = -1,
	  .samples = { [FORMAT_COMPILED_EXACT] = 4,
		       [FORMAT_COMPILED_APPROXIMATE] = 2,
		       [FORMAT_COMPILED_TRACE] = 1 } },
	{ .pid = 8, .number = 2, .samples = { [FORMAT_COMPILED_TRACE] = 3 } },
};

static const struct format_writer_ops format = { .name = "sysprof" };
static const struct daemon_output outputs[] = { { .path = "out.bin", .format = &format },
						{ .path = "b.bin", .format = &format } };
static const struct daemon_options options = { .outputs = outputs, .output_count = 1 };

static struct daemon_stats stats = { .samples = 20,
				     .compiled = { [FORMAT_COMPILED_NONE] = 4,
						   [FORMAT_COMPILED_EXACT] = 10,
						   [FORMAT_COMPILED_APPROXIMATE] = 2,
						   [FORMAT_COMPILED_TRACE] = 4 },
				     .traces = traces,
				     .trace_count = 3,
				     .unlisted_trace_samples = 3 };

static char *summary(const struct daemon_stats *of)
{
	char *text;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	summary_print(file, &options, of);
	fclose(file);
	return text;
}

static void test_line(void **state)
{
	static const struct daemon_stats interpreted = { .samples = 20 };
	char *text = summary(&stats);

	(void)state;
	assert_non_null(strstr(text, "\n  compiled: 16 of 20 samples, 62.5 % exact, 12.5 % "
				     "approximate, 25.0 % trace only\n"));
	free(text);
	text = summary(&interpreted);
	assert_null(strstr(text, "compiled"));
	free(text);
}

static void test_several_outputs_line(void **state)
{
	static const struct daemon_options several = { .outputs = outputs, .output_count = 2 };
	struct daemon_stats failed = { .outputs = { { .bytes = 7 },
						    { .errnum = 28, .bytes = 9 } } };
	char *text, *kept;
	size_t len;
	FILE *file = open_memstream(&kept, &len);

	(void)state;
	text = summary(&failed);
	assert_non_null(strstr(text, " s to out.bin (7 bytes)\n"));
	assert_null(strstr(text, "limit"));
	free(text);
	failed.limit = DAEMON_LIMIT_BYTES;
	text = summary(&failed);
	assert_non_null(strstr(text, "\n  stopped by --limit-bytes\n"));
	free(text);
	assert_non_null(file);
	summary_print(file, &several, &failed);
	fclose(file);
	assert_non_null(strstr(kept, " s to 2 outputs\n  out.bin: sysprof, 7 bytes\n"
				     "  b.bin, not complete: sysprof, 9 bytes\n"));
	free(kept);
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no %s", key);
	return value;
}

static uint64_t number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(member(object, key));
}

/* Overwrites an older, longer file. */
static struct json_object *write_stats(const struct daemon_stats *of)
{
	FILE *file = tmpfile();
	struct json_object *root;

	assert_non_null(file);
	for (int i = 0; i < 100000; i++)
		fputc('x', file);
	rewind(file);
	assert_int_equal(0, summary_write_json(fileno(file), &options, of));
	assert_int_equal(0, fseek(file, -1, SEEK_END));
	assert_int_equal('}', fgetc(file));
	rewind(file);
	root = json_object_from_fd(fileno(file));
	fclose(file);
	assert_non_null(root);
	return root;
}

static void test_json(void **state)
{
	struct json_object *root = write_stats(&stats), *compiled = member(root, "compiled");

	(void)state;
	assert_int_equal(10, number(compiled, "exact"));
	assert_int_equal(2, number(compiled, "approximate"));
	assert_int_equal(4, number(compiled, "trace"));
	assert_int_equal(3, number(root, "unlisted_trace_samples"));
	json_object_put(root);
}

/* Most samples first, equal ones in the order in which they were met. */
static void test_traces(void **state)
{
	struct json_object *root = write_stats(&stats), *list = member(root, "traces");
	struct json_object *first = json_object_array_get_idx(list, 0);
	struct json_object *second = json_object_array_get_idx(list, 1);
	struct json_object *third = json_object_array_get_idx(list, 2);

	(void)state;
	assert_int_equal(3, json_object_array_length(list));
	assert_int_equal(65535, number(first, "trace"));
	assert_int_equal(7, number(first, "pid"));
	assert_int_equal(7, number(first, "samples"));
	assert_int_equal(4, number(first, "exact"));
	assert_int_equal(2, number(first, "approximate"));
	assert_int_equal(1, number(first, "trace_only"));
	assert_int_equal(-1, json_object_get_int64(member(first, "line")));
	/* What is no UTF-8 is replaced byte by byte. */
	assert_string_equal("@?\xc3\xa4??.lua", json_object_get_string(member(first, "chunk")));
	assert_int_equal(1, number(second, "trace"));
	assert_string_equal("@a.lua", json_object_get_string(member(second, "chunk")));
	assert_int_equal(2, number(third, "trace"));
	assert_null(member(third, "chunk"));
	json_object_put(root);
}

/* Bytes that look like UTF-8 and are none: RFC 3629, section 3. */
static void test_foreign_chunks(void **state)
{
	static const struct {
		const char *chunk, *shown;
	} cases[] = {
		{ "=\xed\xa0\x80", "=???" }, /* half of a surrogate pair */
		{ "=\xed\x9f\xbf", "=\xed\x9f\xbf" },
		{ "=\xc0\x80", "=??" }, /* longer than it has to be */
		{ "=\xe0\x9f\xbf", "=???" },
		{ "=\xf0\x8f\xbf\xbf", "=????" },
		{ "=\xf4\x8f\xbf\xbf", "=\xf4\x8f\xbf\xbf" },
		{ "=\xf4\x90\x80\x80", "=????" }, /* beyond the last one */
		{ "=\xf5\x80\x80\x80", "=????" },
		{ "=\xc3", "=?" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[8];
		struct daemon_trace trace = { .pid = 7, .number = 1, .chunk = text };
		const struct daemon_stats of = { .traces = &trace, .trace_count = 1 };
		struct json_object *root;

		snprintf(text, sizeof(text), "%s", cases[i].chunk);
		root = write_stats(&of);
		assert_string_equal(
			cases[i].shown,
			json_object_get_string(member(
				json_object_array_get_idx(member(root, "traces"), 0), "chunk")));
		json_object_put(root);
	}
}

/* Where nobody is stopped nothing tells of stops. */
static void test_copies(void **state)
{
	struct daemon_stats copied = stats, stopped = stats;
	char *text;

	(void)state;
	copied.capture = DAEMON_CAPTURE_KERNEL;
	daemon_histogram_add(&copied.copied, 2000);
	text = summary(&copied);
	assert_non_null(strstr(text, "  target copied in: p50 2.0 us"));
	assert_null(strstr(text, "ended early"));
	assert_null(strstr(text, "target stopped"));
	free(text);
	copied.late_copies = 3;
	text = summary(&copied);
	assert_non_null(strstr(text, "; 3 ended early\n"));
	free(text);
	daemon_histogram_add(&copied.stopped, 50000);
	text = summary(&copied);
	assert_non_null(strstr(text, "  target stopped: once, p50 "));
	free(text);
	daemon_histogram_add(&copied.stopped, 50000);
	text = summary(&copied);
	assert_non_null(strstr(text, "  target stopped: 2 times, p50 "));
	free(text);
	text = summary(&stats);
	assert_non_null(strstr(text, "  target stopped: p50 0.0 us"));
	assert_null(strstr(text, "copied"));
	assert_null(strstr(text, "ended early"));
	free(text);
	stopped.late_copies = 2;
	text = summary(&stopped);
	assert_non_null(strstr(text, "(held: p50 0.0 us); 2 ended early\n"));
	free(text);
}

/* Copies are what there should be of a thread that runs. */
static void test_no_copies(void **state)
{
	static const struct daemon_options fast = { .outputs = outputs,
						    .output_count = 1,
						    .rate_hz = 100 };
	struct daemon_stats none = { .capture = DAEMON_CAPTURE_KERNEL, .ran_ns = 50000000 };
	char *text;
	size_t len;

	(void)state;
	for (int i = 0; i < 4; i++) {
		FILE *file = open_memstream(&text, &len);

		assert_non_null(file);
		summary_print(file, &fast, &none);
		fclose(file);
		assert_null(strstr(text, "target stopped"));
		if (i < 3) {
			assert_non_null(strstr(text, "  target copied: never\n"));
			assert_int_equal(i > 0, strstr(text, "\n  warning: no copy was made in "
							     "2.50 s in which threads ran: try "
							     "--capture=stop\n") != NULL);
		}
		if (i == 3)
			assert_null(strstr(text, "warning"));
		free(text);
		none.ran_ns = 2500000000;
		if (i == 2)
			daemon_histogram_add(&none.copied, 2000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),	       cmocka_unit_test(test_no_copies),
		cmocka_unit_test(test_line),	       cmocka_unit_test(test_several_outputs_line),
		cmocka_unit_test(test_json),	       cmocka_unit_test(test_traces),
		cmocka_unit_test(test_foreign_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
