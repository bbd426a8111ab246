/* SPDX-License-Identifier: MIT */
/* The writer process: whatever ends it, or the recorder, the file is a readable profile. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/clock.h"
#include "daemon/writer.h"

#define DEADLINE_MS 20000
#define FUNCTIONS   8
/** Room of an output that fills up. */
#define SMALL_BYTES 16384

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/writer_test.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void start_as(const struct format_writer_ops *format, const char *output,
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

static void start(const char *output, struct writer *ret_writer)
{
	start_as(format_writers[0], output, ret_writer);
}

/* Several at once; names by their format. */
static void start_series(const char *const *outputs, size_t count, uint64_t rotate_ns,
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

static void start_all(const char *const *outputs, size_t count, struct writer *ret_writer)
{
	start_series(outputs, count, 0, 0, ret_writer);
}

static void put_functions(struct writer *writer)
{
	struct failure why;
	char name[32];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
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

static int put_sample_of(struct writer *writer, uint32_t number, uint64_t time_ns,
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
						   .function = (number + i) % FUNCTIONS,
						   .line = number + i };
	return message_put_sample(&writer->queue, &sample, why);
}

static int put_sample(struct writer *writer, uint32_t number, struct failure *why)
{
	return put_sample_of(writer, number, number, why);
}

static int put_and_flush(struct writer *writer, uint32_t count, struct failure *why)
{
	for (uint32_t i = 0; i < count; i++)
		if (put_sample(writer, i, why) != 0)
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

/* Samples in a file; fails the test where it is no readable profile. */
static long samples_in(const char *name)
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

/* An opened writer makes the file a profile at once; the first report comes with the last one. */
static void await_profile(const char *name)
{
	const struct timespec nap = { .tv_nsec = 2000000 };

	for (int i = 0; i < DEADLINE_MS / 2; i++) {
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

static bool await_samples(const char *name, long count)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	await_profile(name);
	for (int i = 0; i < DEADLINE_MS / 5; i++) {
		if (samples_in(name) >= count)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static void test_whole_recording(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why;
	FILE *file;

	(void)state;
	start(path, &writer);
	put_functions(&writer);
	for (int i = 0; i < 10; i++)
		assert_int_equal(0, put_and_flush(&writer, 100, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(1000, status.samples);
	assert_int_equal(1000, samples_in(path));
	file = fopen(path, "re");
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
	start(path, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(0, status.samples);
	assert_int_equal(0, samples_in(path));
}

/* Readable while the recording goes on, at most a second behind. */
static void test_readable_while_written(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	start(path, &writer);
	await_profile(path);
	assert_int_equal(0, samples_in(path));
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 50, &why));
	assert_true(await_samples(path, 50));
	writer_finish(&writer, &status);
	assert_int_equal(50, samples_in(path));
}

static void test_writer_is_killed(void **state)
{
	struct message_status status;
	struct writer writer;
	struct failure why = { 0 };
	int ret = 0;

	(void)state;
	start(path, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 50, &why));
	assert_true(await_samples(path, 50));
	assert_int_equal(0, put_and_flush(&writer, 50, &why));
	kill(writer.pid, SIGKILL);
	for (int i = 0; i < 1000 && ret == 0; i++)
		ret = put_and_flush(&writer, 100, &why);
	assert_int_equal(-1, ret);
	assert_int_equal(FAILURE_GONE, why.kind);
	assert_true(samples_in(path) >= 50);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
}

/* Who asks for the end of a recording does not wait for a writer that takes nothing. */
static void test_stop_ends_the_wait(void **state)
{
	const volatile sig_atomic_t stop = 1;
	const char *const outputs[] = { path };
	struct message_status status;
	struct writer writer;
	struct failure why;
	uint32_t count = 0;

	(void)state;
	start_all(outputs, 1, &writer);
	put_functions(&writer);
	await_profile(path);
	kill(writer.pid, SIGSTOP);
	do
		assert_int_equal(0, put_sample(&writer, count++, &why));
	while (message_flush_now(&writer.queue, &why) == 1);
	assert_int_equal(0, writer_send(&writer, 0, UINT64_MAX, &stop, &why));
	assert_int_equal(0, writer_send(&writer, 0, daemon_now_ns(), NULL, &why));
	assert_true(message_queued(&writer.queue) > 0);
	kill(writer.pid, SIGCONT);
	assert_int_equal(0, writer_send(&writer, 0, UINT64_MAX, NULL, &why));
	assert_int_equal(0, message_queued(&writer.queue));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(count, samples_in(path));
}

/* The terminal's signals reach the whole process group; only the recorder ends the file. */
static void test_signals_are_ignored(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	start(path, &writer);
	await_profile(path);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		kill(writer.pid, numbers[i]);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 50, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(50, samples_in(path));
}

static void die_without_end(struct writer *writer, size_t unsent_bytes)
{
	struct failure why;
	pid_t pid = writer->pid;

	put_functions(writer);
	for (uint32_t i = 0; i < 50; i++)
		put_sample(writer, i, &why);
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
	start(path, &writer);
	die_without_end(&writer, 0);
	assert_int_equal(50, samples_in(path));
}

/* ... in the middle of a message: what came whole is in the file. */
static void test_recorder_dies_inside_a_message(void **state)
{
	struct writer writer;

	(void)state;
	start(path, &writer);
	die_without_end(&writer, 10);
	assert_int_equal(49, samples_in(path));
}

/* ---- Several outputs, and whole ones ----------------------------------------------------- */

/* Sum of the counts in a folded profile, and whether it is one. */
static long folded_in(const char *name)
{
	FILE *file = fopen(name, "re");
	char line[4096];
	long sum = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *blank = strrchr(line, ' ');

		assert_non_null(blank);
		sum += strtol(blank, NULL, 10);
	}
	fclose(file);
	return sum;
}

static void put_text(const char *name, const char *text)
{
	FILE *file = fopen(name, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_text(const char *name, const char *text)
{
	FILE *file = fopen(name, "re");
	char got[64] = "";

	assert_non_null(file);
	assert_int_equal(strlen(text), fread(got, 1, sizeof(got) - 1, file));
	assert_string_equal(text, got);
	fclose(file);
}

/* A folder of its own, so that what else is left in it shows. */
static void make_folder(char *folder, char *file, size_t len, const char *name)
{
	assert_non_null(mkdtemp(folder));
	snprintf(file, len, "%s/%s", folder, name);
}

/* Fails where there is more in it than that file. */
static void remove_folder(const char *folder, const char *file)
{
	unlink(file);
	assert_int_equal(0, rmdir(folder));
}

static void test_several_outputs(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { path, file, "/dev/null" };
	struct message_status status;
	struct stat result;
	struct writer writer;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	start_all(outputs, 3, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(300, status.samples);
	assert_int_equal(300, samples_in(path));
	assert_int_equal(300, folded_in(file));
	assert_int_equal(0, stat(file, &result));
	assert_int_equal(result.st_size, status.outputs[1].bytes);
	assert_int_equal(status.outputs[0].bytes, status.outputs[2].bytes);
	remove_folder(folder, file);
}

/* A file that is there is what it was until the new one is whole, and for whom it was. */
static void test_replaced(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { file };
	struct message_status status;
	struct writer writer;
	struct stat result;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	put_text(file, "old");
	assert_int_equal(0, chmod(file, 0640));
	start_all(outputs, 1, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 30, &why));
	assert_text(file, "old");
	kill(writer.pid, SIGKILL);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
	assert_text(file, "old");
	start_all(outputs, 1, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 30, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(30, folded_in(file));
	assert_int_equal(0, stat(file, &result));
	assert_int_equal(0640, result.st_mode & 07777);
	remove_folder(folder, file);
}

static void test_link_is_followed(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64], name[80];
	const char *const outputs[] = { name };
	struct message_status status;
	struct writer writer;
	struct stat result;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	snprintf(name, sizeof(name), "%s/link.folded", folder);
	put_text(file, "old");
	assert_int_equal(0, symlink("a.folded", name));
	start_all(outputs, 1, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(0, lstat(name, &result));
	assert_true(S_ISLNK(result.st_mode));
	assert_text(file, "");
	unlink(name);
	remove_folder(folder, file);
}

/* Ended without an END and without a sample: nothing was recorded. */
static void test_nothing_recorded(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { path, file };
	struct message_status status;
	struct writer writer;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	put_text(path, "old stream");
	put_text(file, "old folded");
	start_all(outputs, 2, &writer);
	put_functions(&writer);
	writer_collect(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_text(path, "old stream");
	assert_text(file, "old folded");
	start_all(outputs, 2, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, samples_in(path));
	assert_text(file, "");
	remove_folder(folder, file);
}

/* The others get all that was sent. */
static void test_one_of_several_fails(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { path, "/dev/full", file };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	make_folder(folder, file, sizeof(file), "a.folded");
	start_all(outputs, 3, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(ENOSPC, status.errnum);
	assert_int_equal(0, status.outputs[0].errnum);
	assert_int_equal(ENOSPC, status.outputs[1].errnum);
	assert_int_equal(0, status.outputs[2].errnum);
	assert_int_equal(300, samples_in(path));
	assert_int_equal(300, folded_in(file));
	remove_folder(folder, file);
}

/* The new file has no room: the old one stays, and nothing else is left. */
static void test_replacement_fails(void **state)
{
	const struct rlimit small = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { file };
	struct message_status status;
	struct rlimit old;
	struct writer writer;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	put_text(file, "old");
	assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &old));
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
	start_all(outputs, 1, &writer);
	setrlimit(RLIMIT_FSIZE, &old);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(EFBIG, status.errnum);
	assert_text(file, "old");
	remove_folder(folder, file);
}

/* ---- Series and snapshots ---------------------------------------------------------------- */

/* Files that match, and the samples in all of them; removes them. */
static size_t take_files(const char *folder, const char *name, long *ret_samples)
{
	char pattern[80];
	size_t count;
	glob_t found;

	*ret_samples = 0;
	snprintf(pattern, sizeof(pattern), "%s/%s", folder, name);
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	count = found.gl_pathc;
	for (size_t i = 0; i < count; i++) {
		*ret_samples += strstr(name, ".bin") ? samples_in(found.gl_pathv[i])
						     : folded_in(found.gl_pathv[i]);
		unlink(found.gl_pathv[i]);
	}
	globfree(&found);
	return count;
}

/* By the times of samples: a second of which none comes has no file. */
static void put_seconds(struct writer *writer)
{
	static const uint64_t times_ms[] = { 1, 999, 1000, 1001, 999, 3500, 3999, 4000 };
	struct failure why;

	put_functions(writer);
	for (uint32_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++)
		assert_int_equal(0, put_sample_of(writer, i, times_ms[i] * 1000000u, &why));
	assert_int_equal(0, message_flush(&writer->queue, &why));
}

static void test_series(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64], other[64];
	const char *const outputs[] = { file, other };
	struct message_status status;
	struct writer writer;
	long samples;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	snprintf(other, sizeof(other), "%s/a.bin", folder);
	start_series(outputs, 2, 1000000000u, 0, &writer);
	put_seconds(&writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	for (int i = 0; i < 2; i++)
		assert_int_equal(4, status.outputs[i].files);
	assert_int_equal(4, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(8, samples);
	assert_int_equal(4, take_files(folder, "a-*.bin", &samples));
	assert_int_equal(8, samples);
	/* The newest ones, of which the last but one has two samples and the last has one. */
	start_series(outputs, 2, 1000000000u, 2, &writer);
	put_seconds(&writer);
	writer_finish(&writer, &status);
	assert_int_equal(4, status.outputs[0].files);
	assert_int_equal(2, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(3, samples);
	assert_int_equal(2, take_files(folder, "a-*.bin", &samples));
	assert_int_equal(3, samples);
	remove_folder(folder, file);
}

/* New files begin when the recorder says, however late the writer hears of it. */
static void test_snapshot_of_a_series(void **state)
{
	static const uint64_t before_ms[] = { 1, 2, 999 }, after_ms[] = { 2500, 3400, 3460, 4440 };
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { file };
	struct message_status status;
	struct writer writer;
	struct failure why;
	long samples;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	start_series(outputs, 1, 1000000000u, 0, &writer);
	put_functions(&writer);
	for (uint32_t i = 0; i < 3; i++)
		put_sample_of(&writer, i, before_ms[i] * 1000000u, &why);
	message_put_snapshot(&writer.queue, 2450 * 1000000ull, &why);
	for (uint32_t i = 0; i < 4; i++)
		put_sample_of(&writer, i, after_ms[i] * 1000000u, &why);
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(3, status.outputs[0].files);
	assert_int_equal(3, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(7, samples);
	remove_folder(folder, file);
}

/* Files of one second, and one that others have made meanwhile. */
static void test_series_of_one_name(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { file };
	struct message_status status;
	struct writer writer;
	struct failure why;
	long samples;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	start_series(outputs, 1, UINT64_MAX / 4, 0, &writer);
	put_functions(&writer);
	for (uint32_t i = 0; i < 5; i++) {
		put_sample(&writer, i, &why);
		message_put_snapshot(&writer.queue, daemon_now_ns(), &why);
		/* Nothing has come since: no file. */
		message_put_snapshot(&writer.queue, daemon_now_ns(), &why);
	}
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(5, status.outputs[0].files);
	assert_int_equal(5, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(5, samples);
	/* Without a sample there is one file, as ever. */
	start_series(outputs, 1, UINT64_MAX / 4, 0, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(1, take_files(folder, "a-*.folded", &samples));
	remove_folder(folder, file);
}

static void test_snapshot(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { path, file };
	const struct timespec nap = { .tv_nsec = 5000000 };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	start_all(outputs, 2, &writer);
	put_functions(&writer);
	assert_int_equal(0, put_and_flush(&writer, 7, &why));
	assert_int_equal(-1, access(file, F_OK));
	message_put_snapshot(&writer.queue, daemon_now_ns(), &why);
	assert_int_equal(0, message_flush(&writer.queue, &why));
	for (int i = 0; i < DEADLINE_MS / 5 && access(file, F_OK) != 0; i++)
		nanosleep(&nap, NULL);
	assert_int_equal(7, folded_in(file));
	assert_true(await_samples(path, 7));
	assert_int_equal(0, put_and_flush(&writer, 7, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(14, folded_in(file));
	assert_int_equal(14, samples_in(path));
	remove_folder(folder, file);
}

/* ---- Outputs that fail ------------------------------------------------------------------ */

/* Send until the writer gives up. */
static void fill_up(const char *output, int errnum)
{
	struct message_status status;
	struct writer writer;
	struct failure why = { 0 };
	int ret = 0;

	start(output, &writer);
	put_functions(&writer);
	for (int i = 0; i < 5000 && ret == 0 && !writer_has_failed(&writer); i++)
		ret = put_and_flush(&writer, 100, &why);
	assert_int_equal(0, ret);
	assert_true(writer_has_failed(&writer));
	writer_finish(&writer, &status);
	assert_int_equal(errnum, status.errnum);
}

static void test_full_device(void **state)
{
	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	fill_up("/dev/full", ENOSPC);
}

static void test_file_size_limit(void **state)
{
	const struct rlimit small = { .rlim_cur = SMALL_BYTES, .rlim_max = RLIM_INFINITY };
	struct rlimit old;

	(void)state;
	assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &old));
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
	fill_up(path, EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	samples_in(path);
}

static void test_full_disk(void **state)
{
	char folder[] = "/tmp/writer_test_disk.XXXXXX", file[64];
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNS) != 0) {
		print_message("full disk: mounting one is not permitted\n");
		skip();
	}
	assert_int_equal(0, mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	assert_non_null(mkdtemp(folder));
	assert_int_equal(0, mount("none", folder, "tmpfs", 0, "size=64k"));
	snprintf(file, sizeof(file), "%s/file", folder);
	fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	fill_up(file, ENOSPC);
	samples_in(file);
	assert_int_equal(0, umount(folder));
	assert_int_equal(0, rmdir(folder));
}

static void test_closed_pipe(void **state)
{
	struct output_file file = { .path = "pipe", .format = format_writers[0], .folder_fd = -1 };
	const struct writer_options options = { .files = &file, .count = 1 };
	struct message_status status;
	struct writer writer;
	struct failure why = { 0 };
	int ends[2], ret = 0;

	(void)state;
	assert_int_equal(0, pipe2(ends, O_CLOEXEC));
	close(ends[0]);
	file.fd = ends[1];
	assert_int_equal(0, writer_start(&options, &writer, &why));
	output_close(&file);
	put_functions(&writer);
	for (int i = 0; i < 5000 && ret == 0 && !writer_has_failed(&writer); i++)
		ret = put_and_flush(&writer, 100, &why);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
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
	samples_in(path);
}

static void test_unknown_function(void **state)
{
	struct writer writer;
	struct failure why;

	(void)state;
	start(path, &writer);
	put_sample(&writer, 0, &why);
	expect_refusal(&writer);
	start(path, &writer);
	put_functions(&writer);
	put_functions(&writer); /* ids out of order */
	expect_refusal(&writer);
}

/* The running trace has to be known like the functions of frames. */
static void test_unknown_trace(void **state)
{
	struct format_frame frame = { .function = 0 };
	struct format_sample sample = { .state = FORMAT_STATE_TRACE,
					.trace = 7,
					.trace_function = FUNCTIONS,
					.compiled = FORMAT_COMPILED_EXACT,
					.weight = 1,
					.frames = &frame,
					.frame_count = 1 };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	start(path, &writer);
	put_functions(&writer);
	message_put_sample(&writer.queue, &sample, &why);
	expect_refusal(&writer);
	start(path, &writer);
	put_functions(&writer);
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
	assert_int_equal(3, samples_in(path));
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

		start_as(format_writer_find(formats[i]), path, &writer);
		put_functions(&writer);
		assert_int_equal(0, put_and_flush(&writer, 3, &why));
		assert_int_equal(
			0, message_put_account(&writer.queue, "ljprof: ticks 3\nrest\n", &why));
		writer_finish(&writer, &status);
		assert_int_equal(0, status.errnum);
		file = fopen(path, "re");
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

		start(path, &writer);
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
	start(path, &writer);
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
	start(path, &writer);
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
	samples_in(path);
}

static void test_noise(void **state)
{
	struct writer writer;

	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		start(path, &writer);
		srandom(seed);
		for (size_t i = writer.queue.len; i < 4096; i++)
			writer.queue.bytes[i] = (uint8_t)random();
		writer.queue.len = 4096;
		expect_refusal(&writer);
	}
}

int main(void)
{
#define WRITER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_whole_recording),
		WRITER_TEST(test_no_samples),
		WRITER_TEST(test_readable_while_written),
		WRITER_TEST(test_writer_is_killed),
		WRITER_TEST(test_signals_are_ignored),
		WRITER_TEST(test_stop_ends_the_wait),
		WRITER_TEST(test_recorder_dies),
		WRITER_TEST(test_recorder_dies_inside_a_message),
		WRITER_TEST(test_several_outputs),
		WRITER_TEST(test_replaced),
		WRITER_TEST(test_link_is_followed),
		WRITER_TEST(test_nothing_recorded),
		WRITER_TEST(test_one_of_several_fails),
		WRITER_TEST(test_replacement_fails),
		WRITER_TEST(test_series),
		WRITER_TEST(test_snapshot_of_a_series),
		WRITER_TEST(test_series_of_one_name),
		WRITER_TEST(test_snapshot),
		WRITER_TEST(test_full_device),
		WRITER_TEST(test_file_size_limit),
		WRITER_TEST(test_full_disk),
		WRITER_TEST(test_closed_pipe),
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
