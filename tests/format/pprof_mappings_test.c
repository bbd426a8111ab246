/* SPDX-License-Identifier: MIT */
/* Where native code lies: mappings, build-ids, addresses and files, there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "format/profile/aggregator.h"
#include "pprof_file.h"

enum { LIBRARY_BYTES = 0x3000 };

static const char old_id[] = "0123456789abcdef0123456789abcdef01234567";
static const char new_id[] = "76543210fedcba9876543210fedcba9876543210";

static struct format_mapping library_at(uint64_t start, const char *build_id)
{
	return (struct format_mapping){ .start = start,
					.limit = start + LIBRARY_BYTES,
					.offset = 0x1000,
					.path = "/usr/lib/libx.so.1",
					.build_id = build_id };
}

/* ---- Profiles --------------------------------------------------------------------------- */

static void add(struct format_profile *profile, const struct format_function *function,
		uint32_t line, uint64_t count)
{
	struct profile_frame frame = { .line = line };
	struct failure why;

	assert_int_equal(0, profile_add_function(profile, function, NULL, &frame.function, &why));
	assert_int_equal(0, profile_add_sample(profile, &frame, 1, NULL, count, &why));
}

/** A function of the library, @p at bytes behind its start. */
static void add_mapped(struct format_profile *profile, const char *name,
		       const struct format_mapping *mapping, uint64_t at, uint64_t count)
{
	const struct format_function function = { .kind = FORMAT_KIND_NATIVE,
						  .name = name,
						  .source = "libx.so.1",
						  .address = mapping->start + at,
						  .mapping = mapping };

	add(profile, &function, 0, count);
}

static const char *text_of(const Pprof__Profile *message, int64_t id)
{
	assert_in_range(id, 0, message->n_string_table - 1);
	return message->string_table[id];
}

/** The location of a function; they have one line each. */
static const Pprof__Location *location_of(const Pprof__Profile *message, const char *name,
					  uint64_t nth)
{
	for (size_t i = 0; i < message->n_location; i++) {
		const Pprof__Location *location = message->location[i];

		assert_int_equal(1, location->n_line);
		for (size_t k = 0; k < message->n_function; k++)
			if (message->function[k]->id == location->line[0]->function_id &&
			    strcmp(text_of(message, message->function[k]->name), name) == 0 &&
			    nth-- == 0)
				return location;
	}
	fail_msg("no location of %s", name);
	return NULL;
}

static const Pprof__Mapping *mapping_of(const Pprof__Profile *message,
					const Pprof__Location *location)
{
	assert_in_range(location->mapping_id, 1, message->n_mapping);
	assert_int_equal(location->mapping_id, message->mapping[location->mapping_id - 1]->id);
	return message->mapping[location->mapping_id - 1];
}

static void expect_library(const Pprof__Profile *message, const Pprof__Location *location,
			   uint64_t start, const char *build_id)
{
	const Pprof__Mapping *mapping = mapping_of(message, location);

	assert_int_equal(start, mapping->memory_start);
	assert_int_equal(start + LIBRARY_BYTES, mapping->memory_limit);
	assert_int_equal(0x1000, mapping->file_offset);
	assert_string_equal("/usr/lib/libx.so.1", text_of(message, mapping->filename));
	assert_string_equal(build_id, text_of(message, mapping->build_id));
}

/* ---- One mapping for each file ---------------------------------------------------------- */

/* A library that a second process has elsewhere, and another build of it at the same place. */
static struct format_profile *make_profile(void)
{
	const struct format_mapping here = library_at(0x7f0000001000, old_id),
				    there = library_at(0x7e0000001000, old_id),
				    other = library_at(0x7f0000001000, new_id);
	struct failure why;
	struct format_profile *profile = format_profile_create(&why);

	assert_non_null(profile);
	add_mapped(profile, "work", &here, 0x100, 1);
	add_mapped(profile, "work", &there, 0x100, 2);
	add_mapped(profile, "rest", &there, 0x200, 4);
	add_mapped(profile, "work", &other, 0x180, 8);
	return profile;
}

static void expect_profile(FILE *file)
{
	Pprof__Profile *message = pprof_file_decode(file);
	const Pprof__Location *location;

	assert_int_equal(2, message->n_mapping);
	assert_int_equal(3, message->n_location);
	location = location_of(message, "work", 0);
	assert_int_equal(0x7f0000001100, location->address);
	expect_library(message, location, 0x7f0000001000, old_id);
	location = location_of(message, "rest", 0);
	assert_int_equal(0x7f0000001200, location->address);
	expect_library(message, location, 0x7f0000001000, old_id);
	location = location_of(message, "work", 1);
	assert_int_equal(0x7f0000001180, location->address);
	expect_library(message, location, 0x7f0000001000, new_id);
	for (size_t i = 0; i < message->n_mapping; i++) {
		assert_true(message->mapping[i]->has_functions);
		assert_false(message->mapping[i]->has_filenames);
		assert_false(message->mapping[i]->has_line_numbers);
	}
	pprof__profile__free_unpacked(message, NULL);
}

static void test_one_for_each_file(void **state)
{
	struct format_profile *profile = make_profile();
	FILE *file = pprof_file_print(profile);

	(void)state;
	expect_profile(file);
	fclose(file);
	format_profile_destroy(profile);
}

static void test_there_and_back(void **state)
{
	struct format_profile *profile = make_profile();
	FILE *file = pprof_file_print(profile), *again;
	struct failure why;
	char *text;

	(void)state;
	format_profile_destroy(profile);
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	again = pprof_file_print(profile);
	expect_profile(again);
	format_profile_destroy(profile);
	/* In what people read, a function is one. */
	text = chains_report_as(again, "folded", &(struct format_report_options){ 0 });
	assert_string_equal("rest 4\nwork 11\n", text);
	free(text);
	fclose(again);
	fclose(file);
}

static void test_adding_up(void **state)
{
	const struct format_mapping elsewhere = library_at(0x7c0000001000, old_id);
	struct format_profile *profile = make_profile(), *sum;
	FILE *files[2] = { pprof_file_print(profile) }, *file;
	struct failure why;
	Pprof__Profile *message;

	(void)state;
	format_profile_destroy(profile);
	profile = format_profile_create(&why);
	add_mapped(profile, "work", &elsewhere, 0x100, 16);
	files[1] = pprof_file_print(profile);
	format_profile_destroy(profile);
	sum = format_profile_create(&why);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(0, format_profile_add(sum, files[i], &why));
		fclose(files[i]);
	}
	file = pprof_file_print(sum);
	expect_profile(file);
	message = pprof_file_decode(file);
	assert_int_equal(3, message->n_sample);
	assert_int_equal(1 + 2 + 16, message->sample[0]->value[0]);
	pprof__profile__free_unpacked(message, NULL);
	fclose(file);
	format_profile_destroy(sum);
}

/* ---- Recordings ------------------------------------------------------------------------- */

/* Functions of a recording have addresses of their own processes. */
static void test_recording(void **state)
{
	const struct format_mapping here = library_at(0x7f0000001000, old_id),
				    there = library_at(0x7e0000001000, old_id);
	struct format_functions *functions = format_functions_create();
	struct format_function function = { .kind = FORMAT_KIND_CFUNC,
					    .name = "encode",
					    .address = 0x7f0000001080,
					    .mapping = &here };
	struct format_frame frame = { .address = 1 };
	const struct format_sample sample = { .weight = 1, .frames = &frame, .frame_count = 1 };
	struct aggregator aggregator;
	Pprof__Profile *message;
	struct failure why;
	FILE *file;
	uint32_t id;

	(void)state;
	assert_int_equal(0, aggregator_init(&aggregator, functions, NULL, &why));
	assert_int_equal(0, format_functions_add(functions, &function, &id, &why));
	assert_ptr_not_equal(&here, format_functions_get(functions, id)->mapping);
	assert_string_equal(old_id, format_functions_get(functions, id)->mapping->build_id);
	assert_int_equal(0, aggregator_sample(&aggregator, &sample, &why));
	function.mapping = &there;
	function.address = 0x7e0000001080;
	assert_int_equal(0, format_functions_add(functions, &function, &frame.function, &why));
	assert_int_equal(0x7e0000001000, format_functions_get(functions, 1)->mapping->start);
	assert_int_equal(0, aggregator_sample(&aggregator, &sample, &why));
	file = pprof_file_print(aggregator.profile);
	message = pprof_file_decode(file);
	assert_int_equal(1, message->n_sample);
	assert_int_equal(2, message->sample[0]->value[0]);
	assert_int_equal(1, message->n_mapping);
	assert_int_equal(0x7f0000001080, location_of(message, "encode", 0)->address);
	expect_library(message, location_of(message, "encode", 0), 0x7f0000001000, old_id);
	pprof__profile__free_unpacked(message, NULL);
	fclose(file);
	aggregator_deinit(&aggregator);
	format_functions_destroy(functions);
}

/* A stream has numbers, which are no addresses that a reader of profiles could look anything up by.
 */
static void test_stream(void **state)
{
	struct format_profile *profile;
	struct chains chains;
	Pprof__Profile *message;
	struct failure why;
	FILE *file;

	(void)state;
	chains_open(&chains, false);
	chains_push(&chains, chains_native(&chains, 0x401000, "main"), 0x401010, 0);
	chains_push(&chains, chains_cfunc(&chains, 0x7f0000001080, "encode"), 0x7f0000001090, 0);
	chains_sample(&chains, FORMAT_STATE_CFUNC);
	chains_commit(&chains);
	rewind(chains.file);
	assert_int_equal(0, format_profile_read(chains.file, &profile, &why));
	file = pprof_file_print(profile);
	message = pprof_file_decode(file);
	assert_int_equal(0, location_of(message, "main", 0)->address);
	assert_int_equal(0, location_of(message, "encode", 0)->address);
	pprof__profile__free_unpacked(message, NULL);
	fclose(file);
	format_profile_destroy(profile);
	chains_close(&chains);
}

/* ---- Profiles of others ----------------------------------------------------------------- */

/** Two locations of one function, with its file and lines, and code that no one has looked up. */
static FILE *make_foreign(void)
{
	static char none[] = "", type_text[] = "samples", unit[] = "count", name[] = "main.work",
		    source[] = "/src/main.go", program[] = "/bin/program", id[] = "buildid/go",
		    library[] = "/lib/liby.so";
	char *texts[] = { none, type_text, unit, name, source, program, id, library };
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types[] = { &type };
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = { &function };
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = { &line };
	Pprof__Location location[3] = { PPROF__LOCATION__INIT, PPROF__LOCATION__INIT,
					PPROF__LOCATION__INIT };
	Pprof__Location *locations[] = { &location[0], &location[1], &location[2] };
	Pprof__Mapping mapping[2] = { PPROF__MAPPING__INIT, PPROF__MAPPING__INIT };
	Pprof__Mapping *mappings[] = { &mapping[0], &mapping[1] };
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
	uint64_t ids[] = { 3, 2, 1 };
	int64_t values[] = { 5 };
	uint8_t bytes[512];

	type.type = 1, type.unit = 2;
	function.id = 9, function.name = function.system_name = 3;
	function.filename = 4, function.start_line = 10;
	line.function_id = 9, line.line = 12;
	for (uint64_t i = 0; i < 3; i++) {
		location[i].id = i + 1;
		location[i].mapping_id = i < 2 ? 1 : 2;
		location[i].address = i < 2 ? 0x401010 + i : 0x70001234;
		location[i].n_line = i < 2;
		location[i].line = lines;
	}
	mapping[0].id = 1, mapping[0].filename = 5, mapping[0].build_id = 6;
	mapping[0].memory_start = 0x400000, mapping[0].memory_limit = 0x500000;
	mapping[1].id = 2, mapping[1].filename = 7;
	mapping[1].memory_start = 0x70000000, mapping[1].memory_limit = 0x70010000;
	mapping[1].file_offset = 0x2000;
	sample.n_location_id = 3, sample.location_id = ids;
	sample.n_value = 1, sample.value = values;
	message.n_sample_type = 1, message.sample_type = types;
	message.n_sample = 1, message.sample = samples;
	message.n_mapping = 2, message.mapping = mappings;
	message.n_location = 3, message.location = locations;
	message.n_function = 1, message.function = functions;
	message.n_string_table = 8, message.string_table = texts;
	assert_in_range(pprof__profile__get_packed_size(&message), 1, sizeof(bytes));
	return chains_file_of(bytes, pprof__profile__pack(&message, bytes));
}

static void expect_foreign(FILE *file)
{
	Pprof__Profile *message = pprof_file_decode(file);
	const Pprof__Location *location;
	const Pprof__Mapping *mapping;

	assert_int_equal(2, message->n_mapping);
	assert_int_equal(3, message->n_location);
	for (uint64_t i = 0; i < 2; i++) {
		location = location_of(message, "main.work", i);
		mapping = mapping_of(message, location);
		assert_int_equal(12, location->line[0]->line);
		assert_int_equal(0x400000, mapping->memory_start);
		assert_int_equal(0x500000, mapping->memory_limit);
		assert_string_equal("/bin/program", text_of(message, mapping->filename));
		assert_string_equal("buildid/go", text_of(message, mapping->build_id));
		assert_true(mapping->has_functions && mapping->has_filenames);
		assert_true(mapping->has_line_numbers);
	}
	assert_int_equal(0x401010 + 0x401011,
			 location_of(message, "main.work", 0)->address +
				 location_of(message, "main.work", 1)->address);
	for (size_t i = 0; i < message->n_function; i++)
		if (strcmp(text_of(message, message->function[i]->name), "main.work") == 0) {
			assert_string_equal("/src/main.go",
					    text_of(message, message->function[i]->filename));
			assert_int_equal(10, message->function[i]->start_line);
		}
	/* For pprof to look up. */
	location = location_of(message, "liby.so+0x70001234", 0);
	mapping = mapping_of(message, location);
	assert_int_equal(0x70001234, location->address);
	assert_int_equal(0x70000000, mapping->memory_start);
	assert_int_equal(0x2000, mapping->file_offset);
	assert_false(mapping->has_functions || mapping->has_filenames || mapping->has_line_numbers);
	pprof__profile__free_unpacked(message, NULL);
}

static void test_foreign(void **state)
{
	FILE *file = make_foreign(), *again;
	struct format_profile *profile;
	struct failure why;
	char *text;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(0, format_profile_read(file, &profile, &why));
		again = pprof_file_print(profile);
		expect_foreign(again);
		format_profile_destroy(profile);
		fclose(file);
		file = again;
	}
	text = chains_report_as(file, "folded", &(struct format_report_options){ 0 });
	assert_string_equal("main.work;main.work;liby.so+0x70001234 5\n", text);
	free(text);
	rewind(file);
	text = chains_report_as(file, "callgrind", &(struct format_report_options){ 0 });
	assert_non_null(strstr(text, " /src/main.go\n"));
	free(text);
	fclose(file);
}

/* A module of which no file is known keeps its name. */
static void test_named_only(void **state)
{
	const struct format_function function = {
		.kind = FORMAT_KIND_NATIVE, .name = "[anon]", .source = "[anon]", .address = 0x1000
	};
	struct format_profile *profile;
	Pprof__Profile *message;
	struct failure why;
	FILE *file;

	(void)state;
	profile = format_profile_create(&why);
	add(profile, &function, 0, 1);
	for (int i = 0; i < 2; i++) {
		file = pprof_file_print(profile);
		format_profile_destroy(profile);
		message = pprof_file_decode(file);
		assert_int_equal(1, message->n_mapping);
		assert_string_equal("[anon]", text_of(message, message->mapping[0]->filename));
		assert_int_equal(0, message->mapping[0]->memory_limit);
		assert_true(message->mapping[0]->has_functions);
		pprof__profile__free_unpacked(message, NULL);
		assert_int_equal(0, format_profile_read(file, &profile, &why));
		fclose(file);
	}
	format_profile_destroy(profile);
}

/* ---- Hostile ---------------------------------------------------------------------------- */

static void test_too_many(void **state)
{
	enum { MAPPINGS = 16384 };
	struct format_profile *profile;
	struct failure why = { 0 };
	uint8_t *bytes = calloc(MAPPINGS + 2, 2);
	FILE *file;

	(void)state;
	assert_non_null(bytes);
	bytes[0] = 0x0a;
	for (size_t i = 1; i < MAPPINGS + 2; i++)
		bytes[2 * i] = 0x1a; /* an empty mapping */
	file = chains_file_of(bytes, 2 * (MAPPINGS + 1));
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	format_profile_destroy(profile);
	fclose(file);
	file = chains_file_of(bytes, 2 * (MAPPINGS + 2));
	assert_int_equal(-1, format_profile_read(file, &profile, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_string_equal("too many mappings", why.step);
	assert_int_equal(2 * (MAPPINGS + 1), why.address);
	fclose(file);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_for_each_file), cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_adding_up),	  cmocka_unit_test(test_recording),
		cmocka_unit_test(test_foreign),		  cmocka_unit_test(test_named_only),
		cmocka_unit_test(test_too_many),	  cmocka_unit_test(test_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
