/* SPDX-License-Identifier: MIT */
/* The order of samples in pprof profiles: kept, added up, edited by others, and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "format/pprof/pprof.h"
#include "format/profile/profile_internal.h"
#include "pprof_file.h"

/* ---- Profiles --------------------------------------------------------------------------- */

static struct format_profile *make(enum format_order order)
{
	struct format_profile *profile = format_profile_create(NULL);

	assert_non_null(profile);
	profile->kind = FORMAT_STREAM_SYSPROF;
	profile->has_kind = true;
	profile->period_ns = 1000;
	format_profile_keep_order(profile, order);
	return profile;
}

static void add(struct format_profile *profile, const char *name, uint64_t us, uint64_t heap_bytes,
		uint64_t count)
{
	const struct format_function function = { .kind = FORMAT_KIND_NATIVE, .name = name };
	struct profile_frame frame = { 0 };

	assert_int_equal(0, profile_add_function(profile, &function, NULL, &frame.function, NULL));
	timeline_set_next(&profile->timeline, us, heap_bytes);
	assert_int_equal(0, profile_add_sample(profile, &frame, 1, NULL, count, NULL));
}

/** The order of the samples below, with times and sizes of the heap. */
static const char in_order[] = "a x1 @1 7000\nb x1 @500 7000\na x2 @501 900\nc x1 @900000 7000\n"
			       "b x300 @900000 7000\na x1 @900001 0\n";

static struct format_profile *make_ordered(void)
{
	struct format_profile *profile = make(FORMAT_ORDER_NEEDED);

	add(profile, "a", 1, 7000, 1);
	add(profile, "b", 500, 7000, 1);
	add(profile, "a", 501, 900, 2);
	add(profile, "c", 900000, 7000, 1);
	add(profile, "b", 900000, 7000, 300);
	add(profile, "a", 900001, 0, 1);
	return profile;
}

static const char *name_of(const struct format_profile *profile, uint32_t key)
{
	size_t count;
	const struct profile_frame *frames =
		profile_chain(profile, profile_sample(profile, key).chain, &count);

	assert_int_equal(1, count);
	return format_functions_get(profile->functions, frames[0].function)->name;
}

/** The order as text; the caller frees it. */
static char *order_of(const struct format_profile *profile)
{
	struct timeline_cursor cursor = { 0 };
	size_t len;
	char *text;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	while (timeline_next(&profile->timeline, &cursor))
		fprintf(file, "%s x%llu @%llu %llu\n", name_of(profile, cursor.key),
			(unsigned long long)cursor.count, (unsigned long long)cursor.us,
			(unsigned long long)cursor.heap_bytes);
	assert_int_equal(0, fclose(file));
	return text;
}

static void expect_order(const struct format_profile *profile, const char *expected)
{
	char *text = order_of(profile);

	assert_string_equal(expected, text);
	free(text);
}

/* ---- Files ------------------------------------------------------------------------------ */

static void add_file(struct format_profile *profile, FILE *file)
{
	struct failure why;

	rewind(file);
	assert_int_equal(0, format_profile_add(profile, file, &why));
}

static struct format_profile *read_back(FILE *file)
{
	struct format_profile *profile = make(FORMAT_ORDER_NEEDED);

	add_file(profile, file);
	return profile;
}

static FILE *pack(const Pprof__Profile *message)
{
	size_t len = pprof__profile__get_packed_size(message);
	uint8_t *bytes = malloc(len);
	FILE *file;

	assert_non_null(bytes);
	pprof__profile__pack(message, bytes);
	file = chains_file_of(bytes, len);
	free(bytes);
	return file;
}

/** The string with the order. */
static char **order_in(Pprof__Profile *message)
{
	char **found = NULL;

	for (size_t i = 0; i < message->n_string_table; i++)
		if (strncmp(message->string_table[i], PPROF_ORDER, strlen(PPROF_ORDER)) == 0) {
			assert_null(found);
			found = &message->string_table[i];
		}
	assert_non_null(found);
	return found;
}

/* ---- Tests ------------------------------------------------------------------------------ */

static void test_there_and_back(void **state)
{
	struct format_profile *profile = make_ordered(), *back;
	FILE *file = pprof_file_print(profile), *again;

	(void)state;
	expect_order(profile, in_order);
	back = read_back(file);
	assert_true(format_profile_has_order(back));
	assert_int_equal(306, back->samples);
	assert_int_equal(306, back->timeline.count);
	expect_order(back, in_order);
	/* Converted once more. */
	again = pprof_file_print(back);
	format_profile_destroy(back);
	back = read_back(again);
	expect_order(back, in_order);
	format_profile_destroy(back);
	format_profile_destroy(profile);
	fclose(file);
	fclose(again);
}

/* Recordings follow each other, and each must have an order. */
static void test_adding_up(void **state)
{
	static const char twice[] = "a x1 @1 7000\nb x1 @500 7000\na x2 @501 900\n"
				    "c x1 @900000 7000\nb x300 @900000 7000\na x1 @900001 0\n"
				    "a x1 @900002 7000\nb x1 @900501 7000\na x2 @900502 900\n"
				    "c x1 @1800001 7000\nb x300 @1800001 7000\na x1 @1800002 0\n";
	struct format_profile *profile = make_ordered(), *back = make(FORMAT_ORDER_NEEDED);
	FILE *file = pprof_file_print(profile), *folded = chains_file_of("a 7\n", 4);

	(void)state;
	add_file(back, file);
	add_file(back, file);
	assert_true(format_profile_has_order(back));
	expect_order(back, twice);
	add_file(back, folded);
	assert_false(format_profile_has_order(back));
	assert_int_equal(619, back->timeline.count);
	format_profile_destroy(back);
	format_profile_destroy(profile);
	fclose(file);
	fclose(folded);
}

/** Read what another program made of the profile: its samples as sums. */
static void expect_sums(const Pprof__Profile *message)
{
	FILE *file = pack(message);
	struct format_profile *back = read_back(file);

	assert_false(format_profile_has_order(back));
	assert_int_equal(back->samples, back->timeline.count);
	format_profile_destroy(back);
	fclose(file);
}

/* Programs that know nothing of the order change samples and leave the field alone. */
static void test_edited_by_others(void **state)
{
	static char other[] = "other";
	struct format_profile *profile = make_ordered();
	FILE *file = pprof_file_print(profile);
	Pprof__Profile *message = pprof_file_decode(file);
	Pprof__Sample *first = message->sample[0];
	char **order = order_in(message), *kept = *order;

	(void)state;
	assert_int_equal(3, message->n_sample);
	*order = other;
	expect_sums(message);
	*order = kept;
	first->value[0]++;
	expect_sums(message);
	first->value[0] -= 2;
	expect_sums(message);
	first->value[0]++;
	/* Two samples changed places. */
	message->sample[0] = message->sample[1];
	message->sample[1] = first;
	expect_sums(message);
	message->sample[1] = message->sample[0];
	message->sample[0] = first;
	/* A sample was left out. */
	message->n_sample = 2;
	expect_sums(message);
	message->n_sample = 3;
	format_profile_destroy(profile);
	pprof__profile__free_unpacked(message, NULL);
	fclose(file);
}

static struct format_profile *read_message(const Pprof__Profile *message)
{
	FILE *file = pack(message);
	struct format_profile *back = read_back(file);

	assert_int_equal(306, back->samples);
	assert_int_equal(306, back->timeline.count);
	fclose(file);
	return back;
}

/* Each letter of the order changed, and each length: no order, or one that fits the samples. */
static void test_damaged(void **state)
{
	struct format_profile *profile = make_ordered();
	FILE *file = pprof_file_print(profile);
	Pprof__Profile *message = pprof_file_decode(file);
	char *letters = *order_in(message) + strlen(PPROF_ORDER);
	size_t len = strlen(letters);
	unsigned fits = 0;

	(void)state;
	for (size_t at = 0; at < len; at++)
		for (int value = 1; value < 256; value++) {
			struct format_profile *back;
			char before = letters[at];

			letters[at] = (char)value;
			back = read_message(message);
			fits += format_profile_has_order(back);
			format_profile_destroy(back);
			letters[at] = before;
		}
	assert_in_range(fits, len, 255 * len - 1);
	/* The last three bytes are the last sample's time and size of the heap. */
	for (size_t cut = len; cut-- > 0;) {
		struct format_profile *back;

		letters[cut] = '\0';
		back = read_message(message);
		assert_int_equal(cut * 3 / 4 + 3 >= len * 3 / 4, format_profile_has_order(back));
		format_profile_destroy(back);
	}
	format_profile_destroy(profile);
	pprof__profile__free_unpacked(message, NULL);
	fclose(file);
}

/* A recording of weeks: the order is forgotten, and its memory given back. */
static void test_too_long(void **state)
{
	struct format_profile *profile = make(FORMAT_ORDER_OPTIONAL), *back;
	uint64_t samples = 0;
	FILE *file;

	(void)state;
	for (; profile->timeline.is_kept && samples < TIMELINE_OPTIONAL_BYTES_MAX; samples++)
		add(profile, samples % 2 ? "a" : "b", samples << 30, samples % 2 ? 0 : INT64_MAX,
		    1);
	/* Numbers of 5 and 9 bytes keep the test short. */
	assert_in_range(samples, TIMELINE_OPTIONAL_BYTES_MAX / 20, TIMELINE_OPTIONAL_BYTES_MAX / 8);
	assert_false(format_profile_has_order(profile));
	assert_null(profile->timeline.bytes);
	assert_int_equal(samples, profile->samples);
	file = pprof_file_print(profile);
	back = read_back(file);
	assert_int_equal(samples, back->samples);
	assert_false(format_profile_has_order(back));
	format_profile_destroy(back);
	format_profile_destroy(profile);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),	 cmocka_unit_test(test_adding_up),
		cmocka_unit_test(test_edited_by_others), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
