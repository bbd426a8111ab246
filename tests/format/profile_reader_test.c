/* SPDX-License-Identifier: MIT */
/* Profiles of others as input, and such as nobody writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "format/file/gzip_write.h"
#include "format/profile/profile_internal.h"
#include "pprof.pb-c.h"
#include "tests/rounds.h"

/* ---- Profiles of others ----------------------------------------------------------------- */

/** What other writers' profiles have: inlined frames, code without names, ids in any order, no
 *  counts but times. */
static FILE *make_foreign(void)
{
	static char none[] = "", cpu[] = "cpu", unit[] = "nanoseconds", out[] = "outer",
		    in[] = "inner", module[] = "libx.so", hello[] = "hello";
	char *texts[] = { none, cpu, unit, out, in, module, hello };
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types[] = { &type };
	Pprof__Function outer = PPROF__FUNCTION__INIT, inner = PPROF__FUNCTION__INIT;
	Pprof__Function *functions[] = { &outer, &inner };
	Pprof__Line lines[] = { PPROF__LINE__INIT, PPROF__LINE__INIT };
	Pprof__Line *line_list[] = { &lines[0], &lines[1] };
	Pprof__Location named = PPROF__LOCATION__INIT, bare = PPROF__LOCATION__INIT;
	Pprof__Location *locations[] = { &named, &bare };
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings[] = { &mapping };
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
	uint64_t ids[] = { 900, 77 };
	int64_t values[] = { 50 }, comments[] = { 6 };
	uint8_t bytes[512];

	type.type = 1, type.unit = 2;
	outer.id = 40, outer.name = outer.system_name = 3;
	inner.id = 30, inner.name = inner.system_name = 4;
	lines[0].function_id = 30, lines[0].line = 5;
	lines[1].function_id = 40, lines[1].line = 6;
	named.id = 77, named.n_line = 2, named.line = line_list;
	bare.id = 900, bare.address = 0x1234, bare.mapping_id = 3;
	mapping.id = 3, mapping.filename = 5;
	sample.n_location_id = 2, sample.location_id = ids;
	sample.n_value = 1, sample.value = values;
	message.n_sample_type = 1, message.sample_type = types;
	message.n_sample = 1, message.sample = samples;
	message.n_mapping = 1, message.mapping = mappings;
	message.n_location = 2, message.location = locations;
	message.n_function = 2, message.function = functions;
	message.n_string_table = 7, message.string_table = texts;
	message.period_type = &type, message.period = 10;
	message.n_comment = 1, message.comment = comments;
	assert_in_range(pprof__profile__get_packed_size(&message), 1, sizeof(bytes));
	return chains_file_of(bytes, pprof__profile__pack(&message, bytes));
}

static void test_foreign(void **state)
{
	FILE *file = make_foreign();
	char *text = chains_report_as(file, "folded", &(struct format_report_options){ 0 });

	(void)state;
	assert_string_equal("outer;inner;libx.so+0x1234 5\n", text);
	free(text);
	fclose(file);
}

/* ---- Folded chains ---------------------------------------------------------------------- */

static void expect_folded(const char *input, const char *output, enum format_annotate annotate)
{
	FILE *file = chains_file_of(input, strlen(input));
	char *text = chains_report_as(file, "folded",
				      &(struct format_report_options){ .annotate = annotate });

	assert_string_equal(output, text);
	free(text);
	fclose(file);
}

static void test_folded_input(void **state)
{
	(void)state;
	expect_folded("b;a 1\r\na;b; 2\n\nb;a 3", "a;b 2\nb;a 4\n", FORMAT_ANNOTATE_NONE);
	expect_folded("main;@a.lua:3_[j];f (@a.lua:4)~_[j] 7\n",
		      "main;@a.lua:3_[j];f (@a.lua:4)~_[j] 7\n", FORMAT_ANNOTATE_JIT);
	expect_folded("a b c (d) 1\n", "a b c (d) 1\n", FORMAT_ANNOTATE_NONE);
	expect_folded("trace 7 @ x.lua:3;trace 8;=stdin:1;x (=stdin:2);C:/f (1) 2\n",
		      "trace 7 @ x.lua:3;trace 8;=stdin:1;x (=stdin:2);C:/f (1) 2\n",
		      FORMAT_ANNOTATE_NONE);
}

static void expect_refused_as(enum failure_kind kind, const void *bytes, size_t len,
			      const char *what, uint64_t offset)
{
	FILE *file = chains_file_of(bytes, len);
	struct format_profile *profile;
	struct failure why = { 0 };

	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(kind, why.kind);
	assert_string_equal(what, why.step);
	assert_int_equal(offset, why.address);
	fclose(file);
}

static void expect_refused(const void *bytes, size_t len, const char *what, uint64_t offset)
{
	expect_refused_as(FAILURE_INVALID, bytes, len, what, offset);
}

static void test_bad_folded(void **state)
{
	(void)state;
	expect_refused("a;b 1\na;b\n", 10, "no count after the chain", 6);
	expect_refused("a;b 1\na;b 1x\n", 13, "no count after the chain", 6);
	expect_refused("a 9223372036854775808\n", 22, "no count after the chain", 0);
	expect_refused("a 99999999999999999999999\n", 26, "no count after the chain", 0);
	expect_refused_as(FAILURE_LIMIT, "a 9223372036854775807\nb 9223372036854775807\nc 2\n", 48,
			  "more samples than can be counted", 22);
	expect_refused("", 0, "empty file", 0);
}

/* ---- Hostile profiles ------------------------------------------------------------------- */

static void test_bad_pprof(void **state)
{
	static const uint8_t group[] = { 0x0a, 0x00, 0x0b };
	static const uint8_t cut[] = { 0x0a, 0x00, 0x12, 0x05, 0x08 };
	static const uint8_t endless[] = { 0x0a, 0x00, 0x48, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t no_location[] = { 0x0a, 0x00, 0x12, 0x04, 0x08, 0x07, 0x10, 0x01 };
	static const uint8_t no_value[] = { 0x0a, 0x00, 0x12, 0x00 };
	static const uint8_t negative[] = { 0x0a, 0x00, 0x12, 0x0b, 0x10, 0xff, 0xff, 0xff,
					    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	static const uint8_t damaged[] = { 0x0a, 0x00, 0x22, 0x02, 0x08, 0xff };
	static const uint8_t number[] = { 0x0a, 0x00, 0x10, 0x01 };

	(void)state;
	expect_refused(group, sizeof(group), "not a field of a profile", 2);
	expect_refused(cut, sizeof(cut), "truncated field", 2);
	expect_refused(endless, sizeof(endless), "truncated field", 2);
	expect_refused(no_location, sizeof(no_location), "a sample with an unknown location", 2);
	expect_refused(no_value, sizeof(no_value), "a sample without a value", 2);
	expect_refused(negative, sizeof(negative), "a sample with a negative value", 2);
	expect_refused(damaged, sizeof(damaged), "damaged location", 2);
	expect_refused(number, sizeof(number), "not a message", 2);
}

/** Append one sample of all locations in @p ids. */
static void put_sample(FILE *file, uint64_t *ids, size_t count)
{
	Pprof__Profile one = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	int64_t value = 1;
	uint8_t bytes[1024];

	sample.n_location_id = count, sample.location_id = ids;
	sample.n_value = 1, sample.value = &value;
	one.n_sample = 1, one.sample = &samples;
	assert_in_range(pprof__profile__get_packed_size(&one), 1, sizeof(bytes));
	fwrite(bytes, 1, pprof__profile__pack(&one, bytes), file);
}

/* A location with many inlined functions, which samples name again and again in a few bytes: chains
 * that all differ are refused before they fill the memory. */
static void test_many_frames(void **state)
{
	enum { LINES = 1024, IDS = 64 };
	struct failure why = { 0 };
	struct format_profile *profile;
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__Location long_one = PPROF__LOCATION__INIT, short_one = PPROF__LOCATION__INIT;
	Pprof__Location *locations[] = { &long_one, &short_one };
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Line line = PPROF__LINE__INIT, *lines[LINES + 1];
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types = &type;
	static uint8_t bytes[16384];
	uint64_t ids[IDS];
	FILE *file;

	(void)state;
	for (int i = 0; i <= LINES; i++)
		lines[i] = &line;
	function.id = line.function_id = 9;
	long_one.id = 1, long_one.n_line = LINES, long_one.line = lines;
	short_one.id = 2;
	message.n_sample_type = 1, message.sample_type = &types;
	message.n_function = 1, message.function = &functions;
	message.n_location = 2, message.location = locations;
	assert_in_range(pprof__profile__get_packed_size(&message), 1, sizeof(bytes) - 8);
	file = chains_file_of(bytes, pprof__profile__pack(&message, bytes));
	fseek(file, 0, SEEK_END);
	/* Which of them are the short ones tells chains apart. */
	for (unsigned i = 0; i * (uint64_t)(IDS - 12) * LINES <= PROFILE_FRAMES_MAX; i++) {
		for (unsigned k = 0; k < IDS; k++)
			ids[k] = k < 12 ? 1 + (i >> k & 1) : 1;
		put_sample(file, ids, IDS);
	}
	rewind(file);
	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_string_equal("more call chains than can be kept", why.step);
	assert_true(why.address > LINES);
	fclose(file);
	/* One more line is no compiler's. */
	long_one.n_line = LINES + 1;
	expect_refused(bytes, pprof__profile__pack(&message, bytes), "too many inlined functions",
		       2);
}

/* Few bytes a chain, and few functions: chains are counted, too. */
static void test_many_chains(void **state)
{
	enum { FUNCTIONS = 1100 };
	struct failure why = { 0 };
	struct format_profile *profile;
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < FUNCTIONS; i++)
		for (int k = 0; k < FUNCTIONS; k++)
			fprintf(file, "a%d;b%d 1\n", i, k);
	rewind(file);
	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_string_equal("more call chains than can be kept", why.step);
	assert_true(why.address > PROFILE_CHAINS_MAX);
	fclose(file);
}

/* A program that loads code all the time has more functions than are kept: the rest is one, or two
 * where some are compiled, as the states of samples go by that. */
static void test_many_functions(void **state)
{
	const uint32_t count = PROFILE_FUNCTIONS_MAX + 100;
	struct failure why = { 0 };
	struct format_profile *profile = format_profile_create(&why);
	const uint32_t kept = PROFILE_FUNCTIONS_MAX - 2;
	char chains[] = "one (@other.lua:5) 1\ntwo (@other.lua:6) 2\n", name[32];
	uint32_t id;
	FILE *file;

	(void)state;
	assert_non_null(profile);
	for (uint32_t i = 0; i < count; i++) {
		const struct format_function function = { .kind = FORMAT_KIND_LUA,
							  .name = name,
							  .source = "=chunk" };
		const struct label_mark mark = { .compiled = i % 2, .trace = i % 2 ? i : 0 };

		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(0, profile_add_function(profile, &function, &mark, &id, &why));
		assert_int_equal(i < kept ? i : kept + i % 2, id);
		assert_int_equal(i % 2, profile->marks[id].compiled);
		assert_int_equal(i < kept ? 5 : 0, profile_line(profile, id, 5));
	}
	for (id = kept; id < PROFILE_FUNCTIONS_MAX; id++)
		assert_string_equal("[other]", format_functions_get(profile->functions, id)->name);
	assert_int_equal(PROFILE_FUNCTIONS_MAX, format_functions_count(profile->functions));
	/* A trace is compiled without a mark. */
	assert_int_equal(0, profile_add_function(profile,
						 &(struct format_function){
							 .kind = FORMAT_KIND_TRACE,
							 .address = 1,
						 },
						 NULL, &id, &why));
	assert_int_equal(kept + 1, id);
	/* Those that are kept are found still. */
	assert_int_equal(0, profile_add_function(profile,
						 &(struct format_function){ .kind = FORMAT_KIND_LUA,
									    .name = "f8",
									    .source = "=chunk" },
						 NULL, &id, &why));
	assert_int_equal(8, id);
	/* Lines of two functions without room do not tell their chains apart. */
	file = fmemopen(chains, sizeof(chains) - 1, "r");
	assert_non_null(file);
	assert_int_equal(0, format_profile_add(profile, file, &why));
	fclose(file);
	assert_int_equal(1, intern_count(profile->chains));
	format_profile_destroy(profile);
}

/* What inflates to more than any profile is refused before it fills the memory. */
static void test_bomb(void **state)
{
	enum { ZEROS = 1 << 20, TIMES = 600 };
	uint8_t *zeros = calloc(1, ZEROS), *member = malloc(pack_bound(ZEROS));
	struct format_profile *profile;
	struct failure why = { 0 };
	FILE *file = tmpfile();
	size_t len;

	(void)state;
	assert_true(zeros && member && file);
	zeros[0] = '\n';
	assert_int_equal(0, pack_member(zeros, ZEROS, member, &len, &why));
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(len, fwrite(member, 1, len, file));
	rewind(file);
	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_string_equal("too large for a profile", why.step);
	fclose(file);
	free(zeros);
	free(member);
}

/* ---- Progress --------------------------------------------------------------------------- */

struct told {
	size_t bytes, most;
};

static void take_progress(void *context, size_t bytes)
{
	struct told *told = context;

	told->bytes += bytes;
	told->most = bytes > told->most ? bytes : told->most;
}

/** The callback gets all bytes of the file in parts, compressed or not. */
static void test_progress(void **state)
{
	enum { LINES = 20000, TEXT_MAX = 64 * LINES };
	char *text = malloc(TEXT_MAX);
	uint8_t *member = malloc(pack_bound(TEXT_MAX));
	size_t len = 0, packed;
	struct failure why;

	(void)state;
	assert_true(text && member);
	for (unsigned i = 0; i < LINES; i++)
		len += (size_t)sprintf(text + len, "main;f%u 1\n", i * 2654435761u);
	assert_int_equal(0, pack_member((uint8_t *)text, len, member, &packed, &why));
	for (int i = 0; i < 2; i++) {
		struct format_profile *profile = format_profile_create(&why);
		FILE *file =
			i ? chains_file_of(member, packed) : chains_file_of((uint8_t *)text, len);
		struct told told = { 0 };

		assert_non_null(profile);
		format_profile_set_progress(profile, take_progress, &told);
		assert_int_equal(0, format_profile_add(profile, file, &why));
		assert_int_equal(i ? packed : len, told.bytes);
		assert_in_range(told.most, 1, 65536);
		fclose(file);
		format_profile_destroy(profile);
	}
	free(text);
	free(member);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign),	    cmocka_unit_test(test_folded_input),
		cmocka_unit_test(test_bad_folded),  cmocka_unit_test(test_bad_pprof),
		cmocka_unit_test(test_many_frames), cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_progress),    cmocka_unit_test(test_bomb),
	};
	const struct CMUnitTest long_tests[] = { cmocka_unit_test(test_many_chains) };
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return test_is_full() ? failed + cmocka_run_group_tests(long_tests, NULL, NULL) : failed;
}
