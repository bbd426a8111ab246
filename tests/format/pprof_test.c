/* SPDX-License-Identifier: MIT */
/* Recordings in the forms of other tools, there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "chains.h"
#include "format/profile/profile_internal.h"
#include "pprof.pb-c.h"

/* ---- A profile -------------------------------------------------------------------------- */

/** Functions of each kind, and a Lua function that also runs compiled. */
struct program {
	struct format_functions *functions;
	uint32_t main, chunk, work, gsub, cfunc, trace, gc, process;
};

static uint32_t add(struct format_functions *functions, struct format_function function)
{
	uint32_t id;

	assert_int_equal(0, format_functions_add(functions, &function, &id, NULL));
	return id;
}

static struct program make_program(void)
{
	struct format_functions *all = format_functions_create();

	return (struct program){
		.functions = all,
		.main = add(all, (struct format_function){ .kind = FORMAT_KIND_NATIVE,
							   .address = 0x401000,
							   .name = "main",
							   .source = "server" }),
		.chunk = add(all, (struct format_function){ .kind = FORMAT_KIND_LUA,
							    .address = 0x41000000,
							    .source = "@app.lua" }),
		.work = add(all, (struct format_function){ .kind = FORMAT_KIND_LUA,
							   .address = 0x41001000,
							   .name = "work",
							   .source = "@app.lua",
							   .first_line = 7 }),
		.gsub = add(all, (struct format_function){ .kind = FORMAT_KIND_BUILTIN,
							   .address = 0x402000,
							   .name = "string.gsub" }),
		.cfunc = add(all, (struct format_function){ .kind = FORMAT_KIND_CFUNC,
							    .address = 0x403000,
							    .name = "encode" }),
		.trace = add(all, (struct format_function){ .kind = FORMAT_KIND_TRACE,
							    .address = 12,
							    .source = "@app.lua",
							    .first_line = 9 }),
		.gc = add(all, (struct format_function){ .kind = FORMAT_KIND_PSEUDO,
							 .name = "[gc sweep]" }),
		.process = add(all, (struct format_function){ .kind = FORMAT_KIND_PROCESS,
							      .address = 4711,
							      .name = "server [4711]" }),
	};
}

enum { PERIOD_NS = 10 * 1000 * 1000 };

static const struct format_options options = { .period_ns = PERIOD_NS,
					       .start_ns = 1000,
					       .time_ns = 1700000000123456789 };

/** A writer of any format over a temporary file. */
struct recording {
	const struct format_writer_ops *ops;
	struct format_sink *sink;
	void *self;
	FILE *file;
};

static void begin(struct recording *recording, const char *format,
		  const struct format_functions *functions, const struct format_options *how)
{
	struct failure why;

	recording->ops = format_writer_find(format);
	recording->file = tmpfile();
	assert_non_null(recording->file);
	assert_int_equal(0,
			 format_sink_create(dup(fileno(recording->file)), &recording->sink, &why));
	if (how->gzip)
		format_sink_compress(recording->sink);
	assert_int_equal(
		0, recording->ops->open(recording->sink, functions, how, &recording->self, &why));
}

static const char notes[] = "ljprof: ticks 6\nljprof: missed 0\n";

static void end(struct recording *recording)
{
	struct failure why;

	if (recording->ops->notes)
		assert_int_equal(0, recording->ops->notes(recording->self, notes, &why));
	assert_int_equal(0, recording->ops->commit(recording->self, true, &why));
	recording->ops->close(recording->self);
	format_sink_destroy(recording->sink);
	rewind(recording->file);
}

static void put(struct recording *recording, const struct format_sample *sample)
{
	struct failure why;

	assert_int_equal(0, recording->ops->sample(recording->self, sample, &why));
}

/** 3 chains, 6 ticks. */
static void put_samples(struct recording *recording, const struct program *program)
{
	const struct format_frame interpreted[] = {
		{ .function = program->gsub, .address = 0x402000 },
		{ .function = program->work, .line = 8 },
		{ .function = program->chunk, .line = 30 },
		{ .function = program->main, .address = 0x401010 },
		{ .function = program->process },
	};
	const struct format_frame compiled[] = {
		{ .function = program->cfunc, .address = 0x403000 },
		{ .function = program->work, .line = 10, .trace = 12, .approximate = true },
		{ .function = program->chunk, .line = 31, .trace = 12 },
		{ .function = program->main, .address = 0x401010 },
		{ .function = program->process },
	};
	const struct format_frame collecting[] = {
		{ .function = program->gc },
		{ .function = program->trace },
		{ .function = program->main, .address = 0x401010 },
		{ .function = program->process },
	};
	const struct format_coroutine coroutine = { .address = 0x7000, .function = program->work };
	struct format_sample sample = { .time_ns = 1000 + PERIOD_NS,
					.pid = 4711,
					.tid = 4712,
					.thread = "worker",
					.state = FORMAT_STATE_FFUNC,
					.weight = 3,
					.full = true,
					.frames = interpreted,
					.frame_count = 5,
					.coroutines = &coroutine,
					.coroutine_count = 1 };

	put(recording, &sample);
	sample.coroutine_count = 0;
	sample.state = FORMAT_STATE_TRACE;
	sample.trace = 12;
	sample.weight = 2;
	sample.frames = compiled;
	put(recording, &sample);
	sample.state = FORMAT_STATE_GC;
	sample.trace = 0;
	sample.weight = 1;
	sample.tid = 4711;
	sample.thread = NULL;
	sample.is_asleep = true;
	sample.frames = collecting;
	sample.frame_count = 4;
	sample.time_ns = 1000 + 60 * (uint64_t)PERIOD_NS;
	put(recording, &sample);
}

static void record(struct recording *recording, const char *format,
		   const struct format_options *how)
{
	struct program program = make_program();

	begin(recording, format, program.functions, how);
	put_samples(recording, &program);
	end(recording);
	format_functions_destroy(program.functions);
}

static const char folded[] = "server [4711];main;@app.lua:30;work (@app.lua:8);string.gsub 3\n"
			     "server [4711];main;@app.lua:31;work (@app.lua:10);encode 2\n"
			     "server [4711];main;trace 12 @ app.lua:9;[gc sweep] 1\n";

/* ---- There and back --------------------------------------------------------------------- */

static void test_folded_of_recording(void **state)
{
	struct recording recording;
	char text[sizeof(folded)] = "";

	(void)state;
	record(&recording, "folded", &options);
	assert_int_equal(sizeof(folded) - 1, fread(text, 1, sizeof(text), recording.file));
	assert_string_equal(folded, text);
	fclose(recording.file);
}

static void test_folded_compressed(void **state)
{
	struct format_options how = options;
	struct recording recording;
	char *text;

	(void)state;
	how.gzip = true;
	record(&recording, "folded", &how);
	assert_int_equal(0x1f, getc(recording.file));
	text = chains_report_as(recording.file, "folded", &(struct format_report_options){ 0 });
	assert_string_equal(folded, text);
	free(text);
	fclose(recording.file);
}

static void test_pprof_there_and_back(void **state)
{
	struct recording recording;
	char *text;

	(void)state;
	record(&recording, "pprof", &options);
	text = chains_report_as(recording.file, "folded", &(struct format_report_options){ 0 });
	assert_string_equal(folded, text);
	free(text);
	text = chains_report_as(
		recording.file, "folded",
		&(struct format_report_options){ .annotate = FORMAT_ANNOTATE_TRACE });
	assert_non_null(strstr(text, "@app.lua:31 [trace 12];work (@app.lua:10) [trace ~12];"));
	free(text);
	text = chains_report_as(recording.file, "counters", &(struct format_report_options){ 0 });
	assert_non_null(strstr(text, "FFUNC 3\n"));
	assert_non_null(strstr(text, "TRACE 2\n"));
	assert_non_null(strstr(text, "GC 1\n"));
	free(text);
	fclose(recording.file);
}

static void test_labels(void **state)
{
	const struct profile_labels *labels;
	struct format_profile *profile;
	struct recording recording;
	struct failure why;
	bool seen[3] = { false };

	(void)state;
	record(&recording, "pprof", &options);
	assert_int_equal(0, format_profile_read(recording.file, &profile, &why));
	assert_int_equal(PERIOD_NS, profile->period_ns);
	assert_int_equal(1700000000123456789, profile->time_ns);
	assert_int_equal(60 * (uint64_t)PERIOD_NS, profile->duration_ns);
	assert_int_equal(3, intern_count(profile->keys));
	for (uint32_t i = 0; i < 3; i++) {
		labels = profile_labels(profile, profile_sample(profile, i).labels);
		assert_int_equal(4711, labels->pid);
		switch (profile->key_counts[i]) {
		case 3:
			assert_int_equal(4712, labels->tid);
			assert_string_equal("worker", profile_string(profile, labels->thread));
			assert_string_equal("work (@app.lua:7)",
					    profile_string(profile, labels->coroutine));
			assert_int_equal(FORMAT_STATE_FFUNC + 1, labels->state);
			assert_int_equal(0, labels->trace);
			break;
		case 2:
			assert_int_equal(0, labels->coroutine);
			assert_int_equal(12, labels->trace);
			assert_false(labels->is_asleep);
			break;
		default:
			assert_int_equal(1, profile->key_counts[i]);
			assert_int_equal(0, labels->thread);
			assert_true(labels->is_asleep);
		}
		assert_in_range(profile->key_counts[i], 1, 3);
		assert_false(seen[profile->key_counts[i] - 1]);
		seen[profile->key_counts[i] - 1] = true;
	}
	format_profile_destroy(profile);
	fclose(recording.file);
}

/** Bytes in use, as a profile of a heap tells. */
static FILE *make_heap(void)
{
	static char none[] = "", in_use[] = "inuse_space", unit[] = "bytes";
	char *texts[] = { none, in_use, unit };
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types[] = { &type };
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = { &location };
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
	uint64_t ids[] = { 1 };
	int64_t values[] = { 4096 };
	uint8_t bytes[256];

	type.type = 1, type.unit = 2;
	location.id = 1, location.address = 0x1000;
	sample.n_location_id = 1, sample.location_id = ids;
	sample.n_value = 1, sample.value = values;
	message.n_sample_type = 1, message.sample_type = types;
	message.n_sample = 1, message.sample = samples;
	message.n_location = 1, message.location = locations;
	message.n_string_table = 3, message.string_table = texts;
	assert_in_range(pprof__profile__get_packed_size(&message), 1, sizeof(bytes));
	return chains_file_of(bytes, pprof__profile__pack(&message, bytes));
}

/* Several files add up, whatever their forms. Text does not tell a C function from native code. */
static void test_adding_up(void **state)
{
	static const char *const forms[] = { "pprof", "folded", "pprof" };
	struct format_profile *profile;
	struct recording recording;
	struct failure why;
	char *text;
	size_t len;
	FILE *out;

	(void)state;
	profile = format_profile_create(&why);
	for (size_t i = 0; i < 3; i++) {
		record(&recording, forms[i], &options);
		assert_int_equal(0, format_profile_add(profile, recording.file, &why));
		fclose(recording.file);
	}
	out = open_memstream(&text, &len);
	assert_int_equal(0, format_report_find("folded")->print(
				    profile, &(struct format_report_options){ 0 }, out, &why));
	fclose(out);
	assert_string_equal("server [4711];main;@app.lua:30;work (@app.lua:8);string.gsub 9\n"
			    "server [4711];main;@app.lua:31;work (@app.lua:10);encode 2\n"
			    "server [4711];main;@app.lua:31;work (@app.lua:10);encode 4\n"
			    "server [4711];main;trace 12 @ app.lua:9;[gc sweep] 3\n",
			    text);
	free(text);
	format_profile_destroy(profile);
}

/* Samples of one period and of another have no common time; what is no number of samples does not
 * add up with samples. */
static void test_periods(void **state)
{
	struct format_options slow = options;
	struct format_profile *profile;
	struct recording recording;
	struct failure why;
	FILE *bytes;

	(void)state;
	slow.period_ns = 2 * PERIOD_NS;
	profile = format_profile_create(&why);
	for (int i = 0; i < 3; i++) {
		record(&recording, "pprof", i < 2 ? &options : &slow);
		assert_int_equal(0, format_profile_add(profile, recording.file, &why));
		fclose(recording.file);
		assert_int_equal(i < 2 ? PERIOD_NS : 0, profile->period_ns);
		assert_int_equal((i + 1) * 60 * (uint64_t)PERIOD_NS, profile->duration_ns);
	}
	assert_true(format_profile_has_samples(profile));
	/* All that they say. */
	assert_int_equal(3 * strlen(notes), profile->comments.len);
	bytes = make_heap();
	assert_int_equal(-1, format_profile_add(profile, bytes, &why));
	assert_int_equal(FAILURE_DENIED, why.kind);
	format_profile_destroy(profile);
	rewind(bytes);
	assert_int_equal(0, format_profile_read(bytes, &profile, &why));
	assert_false(format_profile_has_samples(profile));
	assert_string_equal("bytes", format_profile_unit(profile));
	assert_int_equal(4096, profile->samples);
	format_profile_destroy(profile);
	fclose(bytes);
}

/* ---- What the file says ----------------------------------------------------------------- */

static uint8_t *unpacked(FILE *file, size_t *ret_len)
{
	enum { MORE = 1 << 20 };
	uint8_t *bytes = malloc(MORE);
	gzFile packed;
	int len;

	rewind(file);
	packed = gzdopen(dup(fileno(file)), "rb");
	assert_non_null(packed);
	assert_non_null(bytes);
	len = gzread(packed, bytes, MORE);
	assert_in_range(len, 1, MORE - 1);
	gzclose(packed);
	*ret_len = (size_t)len;
	return bytes;
}

static const char *text_of(const Pprof__Profile *profile, int64_t id)
{
	assert_in_range(id, 0, profile->n_string_table - 1);
	return profile->string_table[id];
}

/* As a reader takes it that knows nothing of us. */
static void test_message(void **state)
{
	struct recording recording;
	Pprof__Profile *message;
	int64_t count = 0, time = 0;
	uint8_t *bytes;
	size_t len;

	(void)state;
	record(&recording, "pprof", &options);
	bytes = unpacked(recording.file, &len);
	message = pprof__profile__unpack(NULL, len, bytes);
	assert_non_null(message);
	assert_string_equal("", message->string_table[0]);
	assert_int_equal(2, message->n_sample_type);
	assert_string_equal("samples", text_of(message, message->sample_type[0]->type));
	assert_string_equal("count", text_of(message, message->sample_type[0]->unit));
	assert_string_equal("cpu", text_of(message, message->sample_type[1]->type));
	assert_string_equal("nanoseconds", text_of(message, message->sample_type[1]->unit));
	assert_string_equal("cpu", text_of(message, message->period_type->type));
	assert_int_equal(PERIOD_NS, message->period);
	assert_int_equal(2, message->n_comment);
	assert_string_equal("ljprof: ticks 6", text_of(message, message->comment[0]));
	assert_string_equal("ljprof: missed 0", text_of(message, message->comment[1]));
	assert_int_equal(1, message->n_mapping);
	assert_string_equal("server", text_of(message, message->mapping[0]->filename));
	for (size_t i = 0; i < message->n_sample; i++) {
		count += message->sample[i]->value[0];
		time += message->sample[i]->value[1];
	}
	assert_int_equal(6, count);
	assert_int_equal(6 * (int64_t)PERIOD_NS, time);
	for (size_t i = 0; i < message->n_location; i++)
		assert_int_equal(1, message->location[i]->n_line);
	for (size_t i = 0; i < message->n_function; i++)
		if (strcmp(text_of(message, message->function[i]->name), "work (@app.lua:7)") ==
		    0) {
			assert_string_equal("app.lua",
					    text_of(message, message->function[i]->filename));
			assert_int_equal(7, message->function[i]->start_line);
			count++;
		}
	assert_int_equal(6 + 2, count); /* interpreted, and approximate in a trace */
	pprof__profile__free_unpacked(message, NULL);
	free(bytes);
	fclose(recording.file);
}

/* A function has a location for each of its lines. */
static void test_lines_of_a_function(void **state)
{
	const int64_t lines[] = { 8, 9, 8 };
	struct program program = make_program();
	struct format_frame frame = { .function = program.work };
	struct format_sample sample = { .weight = 1, .frames = &frame, .frame_count = 1 };
	struct recording recording;
	Pprof__Profile *message;
	uint8_t *bytes;
	size_t len;

	(void)state;
	begin(&recording, "pprof", program.functions, &options);
	for (size_t i = 0; i < 3; i++) {
		frame.line = (uint32_t)lines[i];
		put(&recording, &sample);
	}
	end(&recording);
	bytes = unpacked(recording.file, &len);
	message = pprof__profile__unpack(NULL, len, bytes);
	assert_non_null(message);
	assert_int_equal(2, message->n_location);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(lines[i], message->location[i]->line[0]->line);
	assert_int_equal(1, message->n_function);
	pprof__profile__free_unpacked(message, NULL);
	free(bytes);
	fclose(recording.file);
	format_functions_destroy(program.functions);
}

/* ---- Cut off ---------------------------------------------------------------------------- */

/* A profile cut off anywhere is refused with a place in it, or read as far as it goes. */
static void test_every_cut(void **state)
{
	struct recording recording;
	uint8_t *bytes;
	size_t len;

	(void)state;
	record(&recording, "pprof", &options);
	bytes = unpacked(recording.file, &len);
	for (size_t cut = 1; cut < len; cut++) {
		FILE *file = chains_file_of(bytes, cut);
		struct format_profile *profile;
		struct failure why = { 0 };

		if (format_profile_read(file, &profile, &why) == 0) {
			format_profile_destroy(profile);
		} else {
			assert_int_equal(FAILURE_INVALID, why.kind);
			assert_in_range(why.address, 0, cut);
		}
		fclose(file);
	}
	free(bytes);
	fclose(recording.file);
}

/* ---- Names ------------------------------------------------------------------------------ */

static void expect_format(const char *path, const char *name)
{
	const struct format_writer_ops *ops = format_writer_for(path);

	assert_string_equal(name, ops ? ops->name : "none");
}

static void test_suffixes(void **state)
{
	(void)state;
	expect_format("out.pb.gz", "pprof");
	expect_format("out.pprof", "pprof");
	expect_format("/tmp/x/out.folded", "folded");
	expect_format("out.folded.gz", "folded");
	expect_format("out.svg", "svg");
	expect_format("out.html", "html");
	expect_format("out.bin", "sysprof");
	expect_format("out.bin.gz", "sysprof");
	expect_format("out", "none");
	expect_format("-", "none");
	expect_format("/tmp/.svg", "none");
	expect_format(".gz", "none");
	expect_format("", "none");
}

static void test_any_suffix(void **state)
{
	(void)state;
	assert_true(format_has_suffix("out.xyz"));
	assert_true(format_has_suffix("a.b/out.svg"));
	assert_true(format_has_suffix("out.xyz.gz"));
	assert_false(format_has_suffix("out"));
	assert_false(format_has_suffix("out.gz"));
	assert_false(format_has_suffix("a.b/out"));
	assert_false(format_has_suffix("a.b/.out"));
	assert_false(format_has_suffix("-"));
	assert_false(format_has_suffix(""));
}

static void expect_stem(const char *path, const char *stem)
{
	assert_int_equal(strlen(stem), format_stem_len(path));
}

static void test_stems(void **state)
{
	(void)state;
	expect_stem("out.pb.gz", "out");
	expect_stem("out.folded.gz", "out");
	expect_stem("a.b.svg", "a.b");
	expect_stem("out.bin", "out");
	expect_stem("out.dat", "out");
	expect_stem("out.dat.gz", "out.dat");
	expect_stem("out", "out");
	expect_stem("a.d/out", "a.d/out");
	expect_stem(".svg", ".svg");
	expect_stem(".gz", ".gz");
	expect_stem("a/.dat", "a/.dat");
	expect_stem("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded_of_recording),
		cmocka_unit_test(test_folded_compressed),
		cmocka_unit_test(test_pprof_there_and_back),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_adding_up),
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_lines_of_a_function),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_any_suffix),
		cmocka_unit_test(test_stems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
