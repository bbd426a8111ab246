/* SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "format/stream.h"
#include "format/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

char recorder_path[64];

int recorder_setup(void **state)
{
	int fd;

	(void)state;
	snprintf(recorder_path, sizeof(recorder_path), "/tmp/writer_test.XXXXXX");
	fd = mkstemp(recorder_path);
	return fd < 0 ? -1 : close(fd);
}

int recorder_teardown(void **state)
{
	(void)state;
	return unlink(recorder_path);
}

void recorder_start_as(const struct format_writer_ops *format, const char *output,
		       struct writer *ret_writer)
{
	const struct daemon_output named = { .path = output, .format = format };
	struct writer_options options = { .count = 1 };
	struct output_file file;
	struct failure why;

	assert_int_equal(0, output_open(&named, false, &file));
	options.files = &file;
	assert_int_equal(0, writer_start(&options, ret_writer, &why));
	output_close(&file);
}

void recorder_start(const char *output, struct writer *ret_writer)
{
	recorder_start_as(format_writers[0], output, ret_writer);
}

void recorder_start_series(const char *const *outputs, size_t count, uint64_t rotate_ns,
			   unsigned keep, struct writer *ret_writer)
{
	struct output_file files[DAEMON_OUTPUTS_MAX];
	const struct writer_options options = {
		.files = files, .count = count, .rotate_ns = rotate_ns, .keep = keep
	};
	struct failure why;

	for (size_t i = 0; i < count; i++) {
		const struct format_writer_ops *format = format_writer_for(outputs[i]);
		const struct daemon_output named = { .path = outputs[i],
						     .format =
							     format ? format : format_writers[0] };

		assert_int_equal(0, output_open(&named, rotate_ns > 0, &files[i]));
	}
	assert_int_equal(0, writer_start(&options, ret_writer, &why));
	for (size_t i = 0; i < count; i++)
		output_close(&files[i]);
}

void recorder_start_all(const char *const *outputs, size_t count, struct writer *ret_writer)
{
	recorder_start_series(outputs, count, 0, 0, ret_writer);
}

void recorder_put_functions(struct writer *writer)
{
	struct failure why;
	char name[32];

	for (uint32_t i = 0; i < RECORDER_FUNCTIONS; i++) {
		const struct format_function function = {
			.kind = i % 2 ? FORMAT_KIND_NATIVE : FORMAT_KIND_LUA,
			.address = 0x10000 + i * 64,
			.name = name,
			.source = "@test.lua",
			.first_line = i,
		};

		snprintf(name, sizeof(name), "function_%u", i);
		assert_int_equal(0, message_put_function(&writer->queue, i, &function, &why));
	}
}

int recorder_put_sample_of(struct writer *writer, uint32_t number, uint64_t time_ns,
			   struct failure *why)
{
	struct format_frame frames[20];
	const struct format_sample sample = { .time_ns = time_ns,
					      .pid = 1,
					      .tid = 1,
					      .state = FORMAT_STATE_LFUNC,
					      .weight = 1,
					      .full = true,
					      .frames = frames,
					      .frame_count = 20 };

	for (uint32_t i = 0; i < 20; i++)
		frames[i] = (struct format_frame){ .address = 0x10000 + number * 8 + i,
						   .function = (number + i) % RECORDER_FUNCTIONS,
						   .line = number + i };
	return message_put_sample(&writer->queue, &sample, why);
}

int recorder_put_sample(struct writer *writer, uint32_t number, struct failure *why)
{
	return recorder_put_sample_of(writer, number, number, why);
}

int recorder_put(struct writer *writer, uint32_t count, struct failure *why)
{
	for (uint32_t i = 0; i < count; i++)
		if (recorder_put_sample(writer, i, why) != 0)
			return -1;
	return message_flush(&writer->queue, why);
}

static int count_one(void *context, const struct format_raw_sample *sample, struct failure *why)
{
	(void)sample;
	(void)why;
	++*(long *)context;
	return 0;
}

long recorder_samples_in(const char *name)
{
	const struct format_visitor visitor = { .sample = count_one };
	FILE *file = fopen(name, "re");
	enum format_stream_kind kind;
	struct failure why;
	char text[300];
	long count = 0;

	assert_non_null(file);
	if (format_read_stream(file, &visitor, &count, &kind, &why) != 0) {
		format_describe_failure(&why, name, text, sizeof(text));
		fail_msg("%s", text);
	}
	fclose(file);
	assert_int_equal(FORMAT_STREAM_SYSPROF, kind);
	return count;
}

/* The first report comes only with the last one. */
void recorder_await_profile(const char *name)
{
	const struct timespec nap = { .tv_nsec = 2000000 };

	for (int i = 0; i < RECORDER_DEADLINE_MS / 2; i++) {
		FILE *file = fopen(name, "re");
		int byte = file ? fgetc(file) : EOF;

		if (file)
			fclose(file);
		if (byte != EOF)
			return;
		nanosleep(&nap, NULL);
	}
	fail();
}

bool recorder_await_samples(const char *name, long count)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	recorder_await_profile(name);
	for (int i = 0; i < RECORDER_DEADLINE_MS / 5; i++) {
		if (recorder_samples_in(name) >= count)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}
