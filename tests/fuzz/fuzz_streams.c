/* SPDX-License-Identifier: MIT */
#include "fuzz_streams.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/report.h"
#include "format/stream/tarantool_output.h"
#include "format/text.h"

static void print_profile(const struct format_profile *profile)
{
	struct format_report_options options = { .title = "fuzz" };
	struct failure why = { 0 };

	for (size_t i = 0; format_reports[i]; i++) {
		char *output;
		size_t len;
		FILE *out = open_memstream(&output, &len);

		if (!out)
			abort();
		options.lines = (enum format_lines)(i % 3);
		options.annotate = (enum format_annotate)((i + 1) % 4);
		options.human_readable = i % 2;
		format_reports[i]->print(profile, &options, out, &why);
		fclose(out);
		free(output);
	}
}

static void print_reports(FILE *file)
{
	struct format_profile *profile, *chains;
	struct failure why = { 0 };
	char text[64];

	rewind(file);
	if (format_profile_read(file, &profile, &why)) {
		format_describe_failure(&why, "input", text, sizeof(text));
		return;
	}
	print_profile(profile);
	/* As two runs of a program. Chains may become too many. */
	rewind(file);
	format_profile_add(profile, file, &why);
	print_profile(profile);
	if (format_profile_kind(profile) == FORMAT_STREAM_MEMPROF &&
	    format_profile_of_memory(profile, FORMAT_MEMORY_ALLOC_SPACE, &chains, &why) == 0) {
		print_profile(chains);
		format_profile_destroy(chains);
	}
	format_profile_destroy(profile);
}

static void print_reference(FILE *file)
{
	struct format_text text = { 0 };

	rewind(file);
	tarantool_print_sysprof(file, &text, NULL);
	format_text_deinit(&text);
}

static int copy_symbol(void *sink, const struct format_symbol *symbol, struct failure *why)
{
	return format_put_symbol(sink, symbol, why);
}

static int copy_sample(void *sink, const struct format_raw_sample *raw, struct failure *why)
{
	return format_put_sample(sink, raw, why);
}

static int copy_event(void *sink, const struct format_raw_event *event, struct failure *why)
{
	return format_put_event(sink, event, why);
}

static void copy_records(const void *bytes, size_t len)
{
	static const struct format_visitor visitor = { copy_symbol, copy_sample, copy_event };
	enum format_stream_kind kind;
	struct format_sink *sink;

	if (format_sink_create(open("/dev/null", O_WRONLY | O_CLOEXEC), &sink, NULL))
		abort();
	format_read_bytes(bytes, len, &visitor, sink, &kind, NULL);
	format_sink_destroy(sink);
}

void fuzz_stream(const char *prologue, size_t prologue_len, const uint8_t *bytes, size_t len)
{
	char *input = malloc(prologue_len + len + 1);
	FILE *file;

	if (!input)
		abort();
	if (len >= 3 && memcmp(bytes, "ljs", 3) == 0)
		prologue_len = 0;
	memcpy(input, prologue, prologue_len);
	if (len)
		memcpy(input + prologue_len, bytes, len);
	len += prologue_len;
	file = len ? fmemopen(input, len, "r") : NULL;
	if (file) {
		print_reports(file);
		print_reference(file);
		fclose(file);
	}
	copy_records(input, len);
	free(input);
}
