/* SPDX-License-Identifier: MIT */
#include "chains.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "naive.h"

void chains_open(struct chains *chains, bool first_lines)
{
	const struct format_options options = { .first_lines = first_lines };

	chains_open_with(chains, &options);
}

void chains_open_with(struct chains *chains, const struct format_options *options)
{
	struct failure why = { 0 };

	memset(chains, 0, sizeof(*chains));
	chains->file = tmpfile();
	assert_non_null(chains->file);
	chains->functions = format_functions_create();
	assert_non_null(chains->functions);
	assert_int_equal(0, format_sink_create(dup(fileno(chains->file)), &chains->sink, &why));
	assert_int_equal(0, format_writer_find("sysprof")->open(chains->sink, chains->functions,
								options, &chains->writer, &why));
}

void chains_close(struct chains *chains)
{
	format_writer_find("sysprof")->close(chains->writer);
	format_sink_destroy(chains->sink);
	format_functions_destroy(chains->functions);
	fclose(chains->file);
}

static uint32_t add(struct chains *chains, struct format_function function)
{
	struct failure why = { 0 };
	uint32_t id;

	assert_int_equal(0, format_functions_add(chains->functions, &function, &id, &why));
	return id;
}

uint32_t chains_native(struct chains *chains, uint64_t address, const char *name)
{
	return add(chains, (struct format_function){
				   .kind = FORMAT_KIND_NATIVE, .address = address, .name = name });
}

uint32_t chains_lua(struct chains *chains, uint64_t proto, const char *chunk, int64_t first_line,
		    const char *name)
{
	return add(chains, (struct format_function){ .kind = FORMAT_KIND_LUA,
						     .address = proto,
						     .name = name,
						     .source = chunk,
						     .first_line = first_line });
}

uint32_t chains_fast(struct chains *chains, const char *name)
{
	return add(chains, (struct format_function){
				   .kind = FORMAT_KIND_BUILTIN, .address = 0x5500, .name = name });
}

uint32_t chains_cfunc(struct chains *chains, uint64_t address, const char *name)
{
	return add(chains, (struct format_function){
				   .kind = FORMAT_KIND_CFUNC, .address = address, .name = name });
}

uint32_t chains_trace(struct chains *chains, uint64_t number, const char *chunk, int64_t line)
{
	return add(chains, (struct format_function){ .kind = FORMAT_KIND_TRACE,
						     .address = number,
						     .source = chunk,
						     .first_line = line });
}

uint32_t chains_trace_in(struct chains *chains, uint64_t number, const char *chunk, int64_t line,
			 uint64_t proto, int64_t proto_line)
{
	return add(chains, (struct format_function){ .kind = FORMAT_KIND_TRACE,
						     .address = number,
						     .source = chunk,
						     .first_line = line,
						     .proto = proto,
						     .proto_line = proto_line });
}

uint32_t chains_pseudo(struct chains *chains, const char *name)
{
	return add(chains, (struct format_function){ .kind = FORMAT_KIND_PSEUDO, .name = name });
}

uint32_t chains_process(struct chains *chains, uint64_t pid, const char *name)
{
	return add(chains, (struct format_function){
				   .kind = FORMAT_KIND_PROCESS, .address = pid, .name = name });
}

void chains_push(struct chains *chains, uint32_t function, uint64_t address, uint32_t line)
{
	assert_true(chains->count < CHAINS_FRAMES_MAX);
	chains->frames[chains->count++] =
		(struct format_frame){ .address = address, .function = function, .line = line };
}

void chains_mark(struct chains *chains, uint32_t trace, bool approximate)
{
	assert_true(chains->count > 0);
	chains->frames[chains->count - 1].trace = trace;
	chains->frames[chains->count - 1].approximate = approximate;
}

void chains_sample(struct chains *chains, enum format_state state)
{
	chains_sample_as(chains, state, 0, 1);
}

void chains_sample_as(struct chains *chains, enum format_state state, uint32_t trace,
		      uint32_t weight)
{
	const struct format_sample sample = { .state = state,
					      .trace = trace,
					      .trace_function = FORMAT_NO_FUNCTION,
					      .weight = weight };

	chains_sample_like(chains, &sample);
}

void chains_sample_like(struct chains *chains, const struct format_sample *like)
{
	struct format_frame leaf_first[CHAINS_FRAMES_MAX];
	struct format_sample sample = *like;
	struct failure why = { 0 };

	for (uint32_t i = 0; i < chains->count; i++)
		leaf_first[i] = chains->frames[chains->count - 1 - i];
	sample.frames = leaf_first;
	sample.frame_count = chains->count;
	assert_int_equal(0, format_writer_find("sysprof")->sample(chains->writer, &sample, &why));
	chains->count = 0;
}

void chains_commit(struct chains *chains)
{
	struct failure why = { 0 };

	assert_int_equal(0, format_writer_find("sysprof")->commit(chains->writer, false, &why));
}

FILE *chains_file_of(const void *bytes, size_t len)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(len, fwrite(bytes, 1, len, file));
	rewind(file);
	return file;
}

char *chains_report_as(FILE *file, const char *report, const struct format_report_options *options)
{
	struct format_profile *profile;
	struct failure why = { 0 };
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	rewind(file);
	if (format_profile_read(file, &profile, &why))
		fail_msg("%s at byte %llu", why.step, (unsigned long long)why.address);
	assert_int_equal(0, format_report_find(report)->print(profile, options, out, &why));
	fclose(out);
	format_profile_destroy(profile);
	return text;
}

char *chains_report_of(FILE *file, const char *report)
{
	const struct format_report_options options = { .title = "test" };

	return chains_report_as(file, report, &options);
}

char *chains_report_annotated(struct chains *chains, const char *report,
			      enum format_annotate annotate)
{
	const struct format_report_options options = { .title = "test", .annotate = annotate };

	chains_commit(chains);
	return chains_report_as(chains->file, report, &options);
}

char *chains_report(struct chains *chains, const char *report)
{
	chains_commit(chains);
	return chains_report_of(chains->file, report);
}

char *chains_reference(struct chains *chains)
{
	chains_commit(chains);
	return naive_print(chains->file);
}
