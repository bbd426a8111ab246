/* SPDX-License-Identifier: MIT */
/* Samples in the order of time, and the forms that chart them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "format/report.h"
#include "format/report/chart.h"

static const char *const forms[] = { "speedscope", "cpuprofile", "trace-event", "firefox", "perf" };

#define FORMS (sizeof(forms) / sizeof(forms[0]))
#define MS    1000000u
#define TRIES 20

/* ---- Profiles by hand ------------------------------------------------------------------- */

static struct format_profile *make(uint64_t period_ns)
{
	struct format_profile *profile = format_profile_create(NULL);

	assert_non_null(profile);
	profile->kind = FORMAT_STREAM_SYSPROF;
	profile->period_ns = period_ns;
	format_profile_keep_order(profile, FORMAT_ORDER_NEEDED);
	return profile;
}

/** A sample of one frame. */
static void add(struct format_profile *profile, const char *name, int32_t tid, uint64_t us,
		uint64_t heap_bytes, uint64_t count)
{
	const struct format_function function = { .kind = FORMAT_KIND_NATIVE, .name = name };
	struct profile_labels labels = { .pid = tid ? 1 : 0,
					 .tid = tid,
					 .state = FORMAT_STATE_GC + 1 };
	struct profile_frame frame = { 0 };

	assert_int_equal(0, profile_add_function(profile, &function, NULL, &frame.function, NULL));
	timeline_set_next(&profile->timeline, us, heap_bytes);
	assert_int_equal(0, profile_add_sample(profile, &frame, 1, &labels, count, NULL));
}

static char *print(const struct format_profile *profile, const char *form, int *ret_result)
{
	const struct format_report_options options = { .title = "a \"<title>\"" };
	struct failure why = { 0 };
	size_t len;
	char *text;
	FILE *file = open_memstream(&text, &len);

	*ret_result = format_report_find(form)->print(profile, &options, file, &why);
	assert_int_equal(0, fclose(file));
	assert_true(*ret_result == 0 || why.kind != FAILURE_NONE);
	assert_int_equal(len, strlen(text));
	return text;
}

/** Its JSON, or NULL of perf's text. */
static struct json_object *parse(const struct format_profile *profile, const char *form)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;
	int result;
	char *text = print(profile, form, &result);

	assert_int_equal(0, result);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)strlen(text));
	if (strcmp(form, "perf") == 0)
		assert_null(object);
	else
		assert_int_equal(json_tokener_success, json_tokener_get_error(tokener));
	json_tokener_free(tokener);
	free(text);
	return object;
}

static void parse_all(const struct format_profile *profile)
{
	for (size_t i = 0; i < FORMS; i++)
		json_object_put(parse(profile, forms[i]));
}

/* ---- The timeline ----------------------------------------------------------------------- */

static void test_packing(void **state)
{
	static const struct {
		uint32_t key;
		uint64_t us, heap, count;
	} samples[] = { { 0, 1, 0, 1 },
			{ UINT32_MAX - 1, 1, 5000, 1 },
			{ 3, 1000000, 4000, 7 },
			{ 3, 1000001, 4000, INT64_MAX },
			{ 3, UINT64_MAX, UINT64_MAX, 1 },
			{ 9, UINT64_MAX, 1, 1 },
			{ 9, UINT64_MAX, 0, 2 } };
	struct timeline timeline = { .is_kept = true };
	struct timeline_cursor cursor = { 0 };

	(void)state;
	assert_false(timeline_next(&timeline, &cursor));
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		timeline_set_next(&timeline, samples[i].us, samples[i].heap);
		assert_int_equal(0,
				 timeline_add(&timeline, samples[i].key, samples[i].count, NULL));
	}
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		assert_true(timeline_next(&timeline, &cursor));
		assert_int_equal(samples[i].key, cursor.key);
		assert_int_equal(samples[i].us, cursor.us);
		assert_int_equal(samples[i].heap, cursor.heap_bytes);
		assert_int_equal(samples[i].count, cursor.count);
	}
	assert_false(timeline_next(&timeline, &cursor));
	timeline_deinit(&timeline);
}

/** Times that go back stay where they were. */
static void test_back(void **state)
{
	struct timeline timeline = { .is_kept = true };
	struct timeline_cursor cursor = { 0 };

	(void)state;
	for (uint64_t us = 9; us > 0; us -= 3) {
		timeline_set_next(&timeline, us, 0);
		assert_int_equal(0, timeline_add(&timeline, 1, 1, NULL));
	}
	while (timeline_next(&timeline, &cursor))
		assert_int_equal(9, cursor.us);
	timeline_deinit(&timeline);
}

/** What comes when it is full is counted. */
static void test_full(void **state)
{
	struct timeline timeline = { .is_kept = true, .len = TIMELINE_BYTES_MAX - 8 };

	(void)state;
	assert_int_equal(0, timeline_add(&timeline, 1, 5, NULL));
	assert_int_equal(5, timeline.left_out);
	assert_int_equal(0, timeline.count);
	assert_null(timeline.bytes);
}

/* ---- Charts ----------------------------------------------------------------------------- */

static void chart(const struct format_profile *profile, struct chart *ret_chart)
{
	assert_int_equal(0, chart_init(ret_chart, profile, NULL));
}

/** Ticks come at any moment of their periods, and still no sample is apart from the next. */
static void test_raster(void **state)
{
	static const uint64_t moments[] = { 900, 1001, 2999, 3500, 4100 };
	struct format_profile *profile = make(MS);
	struct chart made;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		add(profile, "a", 7, moments[i], 0, 1);
	chart(profile, &made);
	assert_int_equal(1, made.track_count);
	assert_int_equal(5, made.event_count);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(i * MS, made.events[i].begin_ns);
		assert_int_equal((i + 1) * MS, chart_end_ns(&made, &made.events[i]));
	}
	chart_deinit(&made);
	format_profile_destroy(profile);
}

/** Ticks that were merged lie before the last of them; a thread that slept has a gap. */
static void test_merged_and_gap(void **state)
{
	struct format_profile *profile = make(MS);
	struct chart made;

	(void)state;
	add(profile, "a", 7, 500, 0, 1);
	add(profile, "a", 8, 1500, 0, 1);
	add(profile, "b", 7, 9500, 0, 4);
	add(profile, "b", 7, 9700, 0, 1);
	chart(profile, &made);
	assert_int_equal(2, made.track_count);
	assert_int_equal(3, made.tracks[0].count);
	assert_int_equal(1, made.tracks[1].count);
	assert_int_equal(6, made.tracks[0].samples);
	assert_int_equal(6 * MS, made.events[1].begin_ns);
	assert_int_equal(10 * MS, chart_end_ns(&made, &made.events[1]));
	/* Two in a field: the later one begins where the other ends. */
	assert_int_equal(10 * MS, made.events[2].begin_ns);
	assert_int_equal(8, made.tracks[1].tid);
	assert_int_equal(MS, made.events[3].begin_ns);
	chart_sort_by_time(&made);
	for (size_t i = 1; i < made.event_count; i++)
		assert_true(made.events[i - 1].begin_ns <= made.events[i].begin_ns);
	chart_deinit(&made);
	format_profile_destroy(profile);
}

/** Nothing tells when, or how long: a millisecond each. Without a timeline equal ones are one. */
static void test_no_times(void **state)
{
	(void)state;
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		struct format_profile *profile = make(0);
		struct chart made;

		profile->timeline.is_kept = is_kept;
		add(profile, "a", 0, 0, 0, 1);
		add(profile, "b", 0, 0, 0, 2);
		add(profile, "a", 0, 0, 0, 1);
		chart(profile, &made);
		assert_false(made.has_period);
		assert_int_equal(is_kept ? 3 : 2, made.event_count);
		assert_int_equal(4 * MS, made.tracks[0].end_ns);
		for (size_t i = 1; i < made.event_count; i++)
			assert_int_equal(chart_end_ns(&made, &made.events[i - 1]),
					 made.events[i].begin_ns);
		chart_deinit(&made);
		format_profile_destroy(profile);
	}
}

/** Each thread has its own; only changes are kept. */
static void test_heap(void **state)
{
	struct format_profile *profile = make(MS);
	struct json_object *firefox, *counters, *counts;
	struct chart made;

	(void)state;
	for (uint64_t us = 500; us < 4000; us += 1000) {
		add(profile, "a", 7, us, us < 2000 ? 9000 : 8000, 1);
		add(profile, "a", 8, us, 100, 1);
	}
	chart(profile, &made);
	assert_int_equal(3, made.heap_count);
	assert_int_equal(9000, made.heaps[0].bytes);
	assert_int_equal(8000, made.heaps[1].bytes);
	assert_int_equal(3 * MS, made.heaps[1].ns);
	assert_int_equal(1, made.heaps[2].track);
	chart_deinit(&made);
	firefox = parse(profile, "firefox");
	counters = json_object_object_get(firefox, "counters");
	assert_int_equal(2, json_object_array_length(counters));
	counts = json_object_object_get(
		json_object_object_get(json_object_array_get_idx(counters, 0), "samples"), "count");
	assert_int_equal(-1000, json_object_get_int64(json_object_array_get_idx(counts, 1)));
	json_object_put(firefox);
	format_profile_destroy(profile);
}

/* ---- The forms -------------------------------------------------------------------------- */

static void test_empty(void **state)
{
	struct format_profile *profile = make(MS);

	(void)state;
	parse_all(profile);
	format_profile_destroy(profile);
}

static void test_one(void **state)
{
	struct format_profile *profile = make(MS);

	(void)state;
	add(profile, "alone", 7, 500, 0, 1);
	parse_all(profile);
	for (size_t i = 0; i < FORMS; i++) {
		int result;
		char *text = print(profile, forms[i], &result);

		assert_non_null(strstr(text, "alone"));
		free(text);
	}
	format_profile_destroy(profile);
}

/** A line of perf's text is a sample's head, a frame, or empty. */
static void check_lines(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (line[0] == '\t')
			assert_int_equal(')', line[strlen(line) - 1]);
		else
			assert_non_null(strstr(line, "cpu-clock: "));
		for (; *line; line++)
			assert_true(*line == '\t' || (unsigned char)*line >= ' ');
	}
}

static void test_hostile_names(void **state)
{
	static const char *const names[] = { "\"quoted\" \\",	 "\n\r\t\x01\x1b[31m\x7f",
					     "\xff\xfe\x80\xc3", "</script><!--",
					     "a (b) c)",	 "",
					     "x+0x12 (y)",	 "luajit 1/2 3.0: cpu-clock:" };
	struct format_profile *profile = make(MS);
	int result;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct profile_labels labels = { .pid = -1, .tid = INT32_MIN };
		struct profile_frame frame = { 0 };
		const struct format_function function = { .kind = FORMAT_KIND_LUA,
							  .name = names[i],
							  .source = names[i] };

		assert_int_equal(
			0, profile_add_function(profile, &function, NULL, &frame.function, NULL));
		assert_int_equal(0, profile_add_string(profile, names[i], &labels.thread, NULL));
		labels.coroutine = labels.thread;
		assert_int_equal(0, profile_add_sample(profile, &frame, 1, &labels, 1, NULL));
	}
	parse_all(profile);
	text = print(profile, "perf", &result);
	check_lines(text);
	free(text);
	format_profile_destroy(profile);
}

/** Numbers that no recording has: each form is whole, or refused, and times do not go back. */
static void test_huge_counts(void **state)
{
	static const uint64_t periods[] = { 1, MS, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct format_profile *profile = make(periods[i]);
		struct chart made;

		for (int32_t tid = 1; tid <= 40; tid++) {
			add(profile, "a", tid, UINT64_MAX, UINT64_MAX, INT64_MAX / 200);
			add(profile, "b", tid, UINT64_MAX, 1, INT64_MAX / 200);
			add(profile, "a", tid, UINT64_MAX, 2, 1);
		}
		chart(profile, &made);
		for (size_t j = 0; j < made.event_count; j++) {
			assert_true(made.events[j].begin_ns <=
				    chart_end_ns(&made, &made.events[j]));
			if (j > 0 && made.events[j].track == made.events[j - 1].track)
				assert_true(chart_end_ns(&made, &made.events[j - 1]) <=
					    made.events[j].begin_ns);
		}
		chart_deinit(&made);
		for (size_t j = 0; j < FORMS; j++) {
			int result;
			char *text;

			if (strcmp(forms[j], "perf") != 0) {
				json_object_put(parse(profile, forms[j]));
				continue;
			}
			text = print(profile, forms[j], &result);
			assert_int_equal(-1, result);
			free(text);
		}
		format_profile_destroy(profile);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t time_threads(int32_t count)
{
	struct format_profile *profile = make(MS);
	uint64_t begin_ns;

	for (int32_t tid = 1; tid <= count; tid++)
		add(profile, "a", tid, (uint64_t)tid, (uint64_t)tid, 1);
	begin_ns = now_ns();
	for (size_t i = 0; i < FORMS; i++) {
		int result;

		free(print(profile, forms[i], &result));
		assert_int_equal(0, result);
	}
	format_profile_destroy(profile);
	return now_ns() - begin_ns;
}

/** Ten times as many threads take about ten times as long, and not a hundred times. The clock is
 * the wall clock, because a virtual machine may report too little processor time. If other programs
 * disturb one of the times, later tries show it. */
static void test_many_threads(void **state)
{
	uint64_t few_ns = UINT64_MAX, many_ns = UINT64_MAX;

	(void)state;
	for (unsigned tries = 0; tries < TRIES; tries++) {
		uint64_t few = time_threads(2000), many = time_threads(20000);

		few_ns = few < few_ns ? few : few_ns;
		many_ns = many < many_ns ? many : many_ns;
		if (many_ns / 40 <= few_ns)
			return;
	}
	fail_msg("2,000 threads: %" PRIu64 " ns, 20,000: %" PRIu64 " ns", few_ns, many_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packing),
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_raster),
		cmocka_unit_test(test_merged_and_gap),
		cmocka_unit_test(test_no_times),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_huge_counts),
		cmocka_unit_test(test_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
