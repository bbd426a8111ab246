/* SPDX-License-Identifier: MIT */
/* The process that writes: whole recordings, who dies, and what it refuses. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/tick_clock.h"
#include "daemon/writer/writer.h"
#include "recorder.h"
#include "attach/clock.h"

static void test_whole_recording(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why;
	FILE *file;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_put_functions(&writer);
	for (int i = 0; i < 10; i++)
		assert_int_equal(0, recorder_put(&writer, 100, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(1000, status.samples);
	assert_int_equal(1000, recorder_samples_in(recorder_path));
	file = fopen(recorder_path, "re");
	fseek(file, 0, SEEK_END);
	assert_int_equal(ftell(file), status.outputs[0].bytes);
	fclose(file);
	/* Reaped. */
	assert_int_equal(-1, waitpid(writer.pid, NULL, WNOHANG));
}

static void test_no_samples(void **state)
{
	struct message_status status;
	struct writer writer;

	(void)state;
	recorder_start(recorder_path, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(0, status.samples);
	assert_int_equal(0, recorder_samples_in(recorder_path));
}

/* Readable while the recording goes on, at most a second behind. */
static void test_readable_while_written(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_await_profile(recorder_path);
	assert_int_equal(0, recorder_samples_in(recorder_path));
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 50, &why));
	assert_true(recorder_await_samples(recorder_path, 50));
	writer_finish(&writer, &status);
	assert_int_equal(50, recorder_samples_in(recorder_path));
}

static void test_writer_is_killed(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why = { 0 };
	int ret = 0;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 50, &why));
	assert_true(recorder_await_samples(recorder_path, 50));
	assert_int_equal(0, recorder_put(&writer, 50, &why));
	kill(writer.pid, SIGKILL);
	for (int i = 0; i < 1000 && ret == 0; i++)
		ret = recorder_put(&writer, 100, &why);
	assert_int_equal(-1, ret);
	assert_int_equal(FAILURE_GONE, why.kind);
	assert_true(recorder_samples_in(recorder_path) >= 50);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
}

/* Who asks for the end of a recording does not wait for a writer that takes nothing. */
static void test_stop_ends_the_wait(void **state)
{
	const volatile sig_atomic_t stop = 1;
	const char *const outputs[] = { recorder_path };
	struct message_status status;
	struct writer writer;
	struct failure why;
	uint32_t count = 0;

	(void)state;
	recorder_start_all(outputs, 1, &writer);
	recorder_put_functions(&writer);
	recorder_await_profile(recorder_path);
	kill(writer.pid, SIGSTOP);
	do
		assert_int_equal(0, recorder_put_sample(&writer, count++, &why));
	while (message_flush_now(&writer.queue, &why) == 1);
	assert_int_equal(0, writer_send(&writer, 0, UINT64_MAX, &stop, &why));
	assert_int_equal(0, writer_send(&writer, 0, clock_now_ns(), NULL, &why));
	assert_true(message_queued(&writer.queue) > 0);
	kill(writer.pid, SIGCONT);
	assert_int_equal(0, writer_send(&writer, 0, UINT64_MAX, NULL, &why));
	assert_int_equal(0, message_queued(&writer.queue));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(count, recorder_samples_in(recorder_path));
}

/* The terminal's signals reach the whole process group; only the recorder ends the file. */
static void test_signals_are_ignored(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_await_profile(recorder_path);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		kill(writer.pid, numbers[i]);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 50, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(50, recorder_samples_in(recorder_path));
}

static void die_without_end(struct writer *writer, size_t unsent_bytes)
{
	struct failure why;
	pid_t pid = writer->pid;

	recorder_put_functions(writer);
	for (uint32_t i = 0; i < 50; i++)
		recorder_put_sample(writer, i, &why);
	writer->queue.len -= unsent_bytes;
	assert_int_equal(0, message_flush(&writer->queue, &why));
	close(writer->fd);
	assert_int_equal(pid, waitpid(pid, NULL, 0));
	message_queue_deinit(&writer->queue);
	message_receiver_deinit(&writer->receiver);
}

static void test_recorder_dies(void **state)
{
	struct writer writer;

	(void)state;
	recorder_start(recorder_path, &writer);
	die_without_end(&writer, 0);
	assert_int_equal(50, recorder_samples_in(recorder_path));
}

/* ... in the middle of a message: what came whole is in the file. */
static void test_recorder_dies_inside_a_message(void **state)
{
	struct writer writer;

	(void)state;
	recorder_start(recorder_path, &writer);
	die_without_end(&writer, 10);
	assert_int_equal(49, recorder_samples_in(recorder_path));
}

/* ---- Hostile messages ------------------------------------------------------------------- */

/* The writer refuses what was queued, in good order: a report, and a readable file. */
static void expect_refusal(struct writer *writer)
{
	struct message_status status;
	struct failure why;

	message_flush(&writer->queue, &why);
	writer_collect(writer, &status);
	assert_int_equal(EIO, status.errnum);
	recorder_samples_in(recorder_path);
}

static void test_unknown_function(void **state)
{
	struct writer writer;
	struct failure why;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_put_sample(&writer, 0, &why);
	expect_refusal(&writer);
	recorder_start(recorder_path, &writer);
	recorder_put_functions(&writer);
	recorder_put_functions(&writer); /* ids out of order */
	expect_refusal(&writer);
}

/* The running trace has to be known like the functions of frames. */
static void test_unknown_trace(void **state)
{
	struct format_frame frame = { .function = 0 };
	struct format_sample sample = { .state = FORMAT_STATE_TRACE,
					.trace = 7,
					.trace_function = RECORDER_FUNCTIONS,
					.compiled = FORMAT_COMPILED_EXACT,
					.weight = 1,
					.frames = &frame,
					.frame_count = 1 };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	recorder_start(recorder_path, &writer);
	recorder_put_functions(&writer);
	message_put_sample(&writer.queue, &sample, &why);
	expect_refusal(&writer);
	recorder_start(recorder_path, &writer);
	recorder_put_functions(&writer);
	/* No trace at all; none with a name; a function that is none. */
	sample.trace = 0;
	message_put_sample(&writer.queue, &sample, &why);
	sample.trace = 7;
	sample.trace_function = FORMAT_NO_FUNCTION;
	message_put_sample(&writer.queue, &sample, &why);
	sample.trace_function = 1;
	message_put_sample(&writer.queue, &sample, &why);
	assert_int_equal(0, message_flush(&writer.queue, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(3, recorder_samples_in(recorder_path));
}

/* What the recorder tells of the recording stands in the file where its format has a place for it.
 */
static void test_account(void **state)
{
	static const char *const formats[] = { "callgrind", "sysprof", "folded" };
	struct message_status status;
	struct writer writer;
	struct failure why;
	char text[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		FILE *file;
		size_t len;

		recorder_start_as(format_writer_find(formats[i]), recorder_path, &writer);
		recorder_put_functions(&writer);
		assert_int_equal(0, recorder_put(&writer, 3, &why));
		assert_int_equal(0,
				 message_put_notes(&writer.queue, "ljprof: ticks 3\nrest\n", &why));
		writer_finish(&writer, &status);
		assert_int_equal(0, status.errnum);
		file = fopen(recorder_path, "re");
		assert_non_null(file);
		len = fread(text, 1, sizeof(text) - 1, file);
		text[len] = '\0';
		fclose(file);
		if (i == 0)
			assert_non_null(
				strstr(text, "\ndesc: ljprof: ticks 3\ndesc: Comment: rest\n"));
		else
			assert_null(memmem(text, len, "ticks", 5));
	}
}

static void test_wrong_types(void **state)
{
	static const uint32_t types[] = { 0, MESSAGE_STATUS, 77 };
	const struct message_status status = { 0 };
	struct writer writer;
	struct failure why;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct message_header header = { .len = sizeof(status), .type = types[i] };
		size_t at;

		recorder_start(recorder_path, &writer);
		at = writer.queue.len;
		message_put_status(&writer.queue, &status, &why);
		memcpy(writer.queue.bytes + at, &header, sizeof(header));
		expect_refusal(&writer);
	}
}

static void test_wrong_version(void **state)
{
	const uint32_t version = MESSAGE_VERSION + 1;
	struct writer writer;

	(void)state;
	recorder_start(recorder_path, &writer);
	memcpy(writer.queue.bytes + sizeof(struct message_header), &version, sizeof(version));
	expect_refusal(&writer);
}

/* Functions of every kind with nothing filled in, and frames of them in every state. */
static void test_bare_functions(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why;
	struct format_frame frames[FORMAT_KIND_COUNT * 2] = { 0 };
	struct format_sample sample = { .frames = frames, .frame_count = FORMAT_KIND_COUNT * 2 };

	(void)state;
	recorder_start(recorder_path, &writer);
	for (uint32_t i = 0; i < FORMAT_KIND_COUNT * 2; i++) {
		const struct format_function bare = {
			.kind = (enum format_kind)(i % FORMAT_KIND_COUNT),
			.name = i < FORMAT_KIND_COUNT ? NULL : "",
			.source = i < FORMAT_KIND_COUNT ? NULL : "",
			.first_line = i < FORMAT_KIND_COUNT ? INT64_MIN : INT64_MAX,
		};

		frames[i] = (struct format_frame){ .function = i,
						   .line = UINT32_MAX,
						   .trace = i % 3 ? UINT32_MAX : 0,
						   .approximate = i % 2 };
		assert_int_equal(0, message_put_function(&writer.queue, i, &bare, &why));
	}
	for (uint32_t i = 0; i < FORMAT_STATE_COUNT; i++) {
		sample.state = (enum format_state)i;
		sample.weight = i % 3;
		sample.trace = i % 2 ? UINT32_MAX : 0;
		for (uint32_t k = 0; k < FORMAT_KIND_COUNT * 2; k++) {
			sample.trace_function = k;
			sample.frames = frames + k;
			sample.frame_count = FORMAT_KIND_COUNT * 2 - k;
			assert_int_equal(0, message_put_sample(&writer.queue, &sample, &why));
		}
	}
	assert_int_equal(0, message_flush(&writer.queue, &why));
	writer_finish(&writer, &status);
	/* Written or refused, not crashed. */
	assert_int_not_equal(EPIPE, status.errnum);
	recorder_samples_in(recorder_path);
}

static void test_noise(void **state)
{
	struct writer writer;

	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		recorder_start(recorder_path, &writer);
		srandom(seed);
		for (size_t i = writer.queue.len; i < 4096; i++)
			writer.queue.bytes[i] = (uint8_t)random();
		writer.queue.len = 4096;
		expect_refusal(&writer);
	}
}

int main(void)
{
#define WRITER_TEST(name) cmocka_unit_test_setup_teardown(name, recorder_setup, recorder_teardown)
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_whole_recording),
		WRITER_TEST(test_no_samples),
		WRITER_TEST(test_readable_while_written),
		WRITER_TEST(test_writer_is_killed),
		WRITER_TEST(test_signals_are_ignored),
		WRITER_TEST(test_stop_ends_the_wait),
		WRITER_TEST(test_recorder_dies),
		WRITER_TEST(test_recorder_dies_inside_a_message),
		WRITER_TEST(test_unknown_function),
		WRITER_TEST(test_unknown_trace),
		WRITER_TEST(test_account),
		WRITER_TEST(test_wrong_types),
		WRITER_TEST(test_wrong_version),
		WRITER_TEST(test_bare_functions),
		WRITER_TEST(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
