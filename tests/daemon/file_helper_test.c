/* SPDX-License-Identifier: MIT */
/* The files that it writes: several, whole ones, series, snapshots, and those that fail. */
#include <dirent.h>
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/file_helper.h"
#include "daemon/tick_clock.h"
#include "daemon/writer/writer.h"
#include "recorder.h"
#include "attach/clock.h"

/* Room of an output that fills up. */
enum { SMALL_BYTES = 16384 };

/* ---- Several outputs, and whole ones ---------------------------------------------------- */

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
	const char *const outputs[] = { recorder_path, file, "/dev/null" };
	struct message_status status;
	struct stat result;
	struct writer writer;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	recorder_start_all(outputs, 3, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(300, status.samples);
	assert_int_equal(300, recorder_samples_in(recorder_path));
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
	recorder_start_all(outputs, 1, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 30, &why));
	assert_text(file, "old");
	kill(writer.pid, SIGKILL);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
	assert_text(file, "old");
	recorder_start_all(outputs, 1, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 30, &why));
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
	recorder_start_all(outputs, 1, &writer);
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
	const char *const outputs[] = { recorder_path, file };
	struct message_status status;
	struct writer writer;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	put_text(recorder_path, "old stream");
	put_text(file, "old folded");
	recorder_start_all(outputs, 2, &writer);
	recorder_put_functions(&writer);
	writer_collect(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_text(recorder_path, "old stream");
	assert_text(file, "old folded");
	recorder_start_all(outputs, 2, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(0, recorder_samples_in(recorder_path));
	assert_text(file, "");
	remove_folder(folder, file);
}

/* The others get all that was sent. */
static void test_one_of_several_fails(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { recorder_path, "/dev/full", file };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	make_folder(folder, file, sizeof(file), "a.folded");
	recorder_start_all(outputs, 3, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(ENOSPC, status.errnum);
	assert_int_equal(0, status.outputs[0].errnum);
	assert_int_equal(ENOSPC, status.outputs[1].errnum);
	assert_int_equal(0, status.outputs[2].errnum);
	assert_int_equal(300, recorder_samples_in(recorder_path));
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
	recorder_start_all(outputs, 1, &writer);
	setrlimit(RLIMIT_FSIZE, &old);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 300, &why));
	writer_finish(&writer, &status);
	assert_int_equal(EFBIG, status.errnum);
	assert_text(file, "old");
	remove_folder(folder, file);
}

/* ---- Series and snapshots --------------------------------------------------------------- */

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
		*ret_samples += strstr(name, ".bin") ? recorder_samples_in(found.gl_pathv[i])
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

	recorder_put_functions(writer);
	for (uint32_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++)
		assert_int_equal(0,
				 recorder_put_sample_of(writer, i, times_ms[i] * 1000000u, &why));
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
	recorder_start_series(outputs, 2, 1000000000u, 0, &writer);
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
	recorder_start_series(outputs, 2, 1000000000u, 2, &writer);
	put_seconds(&writer);
	writer_finish(&writer, &status);
	assert_int_equal(4, status.outputs[0].files);
	assert_int_equal(2, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(3, samples);
	assert_int_equal(2, take_files(folder, "a-*.bin", &samples));
	assert_int_equal(3, samples);
	remove_folder(folder, file);
}

static unsigned count_descriptors(pid_t pid)
{
	char path[48];
	unsigned count = 0;
	DIR *descriptors;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	descriptors = opendir(path);
	assert_non_null(descriptors);
	while (readdir(descriptors))
		count++;
	closedir(descriptors);
	return count;
}

/* Nothing stays open in the process that makes the files of a long series. */
static void test_series_keeps_no_files_open(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const struct daemon_output named = { .path = file, .format = format_writers[0] };
	struct output_file output;
	struct file_helper file_helper;
	struct failure why;
	unsigned first = 0;
	int fd;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.bin");
	assert_int_equal(0, output_open(&named, true, &output));
	assert_int_equal(0, file_helper_start(&output, 1, true, 0, &file_helper, &why));
	for (int64_t second = 1; second <= 5; second++) {
		char name[96];

		assert_int_equal(0, file_helper_begin(&file_helper, 0, second, &fd, &why));
		assert_int_equal(4, write(fd, "text", 4));
		assert_int_equal(0, close(fd));
		/* Its answer comes behind all that the last request had it do. */
		assert_int_equal(0, file_helper_finish(&file_helper, 0, &why));
		if (second == 1)
			first = count_descriptors(file_helper.pid);
		assert_int_equal(first, count_descriptors(file_helper.pid));
		snprintf(name, sizeof(name), "%s/a-19700101T00000%d.bin", folder, (int)second);
		assert_text(name, "text");
		unlink(name);
	}
	file_helper_stop(&file_helper);
	output_close(&output);
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
	recorder_start_series(outputs, 1, 1000000000u, 0, &writer);
	recorder_put_functions(&writer);
	for (uint32_t i = 0; i < 3; i++)
		recorder_put_sample_of(&writer, i, before_ms[i] * 1000000u, &why);
	message_put_snapshot(&writer.queue, 2450 * 1000000ull, &why);
	for (uint32_t i = 0; i < 4; i++)
		recorder_put_sample_of(&writer, i, after_ms[i] * 1000000u, &why);
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
	recorder_start_series(outputs, 1, UINT64_MAX / 4, 0, &writer);
	recorder_put_functions(&writer);
	for (uint32_t i = 0; i < 5; i++) {
		recorder_put_sample(&writer, i, &why);
		message_put_snapshot(&writer.queue, clock_now_ns(), &why);
		/* Nothing has come since: no file. */
		message_put_snapshot(&writer.queue, clock_now_ns(), &why);
	}
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(5, status.outputs[0].files);
	assert_int_equal(5, take_files(folder, "a-*.folded", &samples));
	assert_int_equal(5, samples);
	/* Without a sample there is one file, as ever. */
	recorder_start_series(outputs, 1, UINT64_MAX / 4, 0, &writer);
	writer_finish(&writer, &status);
	assert_int_equal(1, take_files(folder, "a-*.folded", &samples));
	remove_folder(folder, file);
}

static void test_snapshot(void **state)
{
	char folder[] = "/tmp/writer_test.XXXXXX", file[64];
	const char *const outputs[] = { recorder_path, file };
	const struct timespec nap = { .tv_nsec = 5000000 };
	struct message_status status;
	struct writer writer;
	struct failure why;

	(void)state;
	make_folder(folder, file, sizeof(file), "a.folded");
	recorder_start_all(outputs, 2, &writer);
	recorder_put_functions(&writer);
	assert_int_equal(0, recorder_put(&writer, 7, &why));
	assert_int_equal(-1, access(file, F_OK));
	message_put_snapshot(&writer.queue, clock_now_ns(), &why);
	assert_int_equal(0, message_flush(&writer.queue, &why));
	for (int i = 0; i < RECORDER_DEADLINE_MS / 5 && access(file, F_OK) != 0; i++)
		nanosleep(&nap, NULL);
	assert_int_equal(7, folded_in(file));
	assert_true(recorder_await_samples(recorder_path, 7));
	assert_int_equal(0, recorder_put(&writer, 7, &why));
	writer_finish(&writer, &status);
	assert_int_equal(0, status.errnum);
	assert_int_equal(14, folded_in(file));
	assert_int_equal(14, recorder_samples_in(recorder_path));
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

	recorder_start(output, &writer);
	recorder_put_functions(&writer);
	for (int i = 0; i < 5000 && ret == 0 && !writer_has_failed(&writer); i++)
		ret = recorder_put(&writer, 100, &why);
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
	fill_up(recorder_path, EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	recorder_samples_in(recorder_path);
}

static void test_full_disk(void **state)
{
	char folder[] = "/tmp/writer_test_disk.XXXXXX", file[64];
	int fd;

	(void)state;
	/* EINVAL: "/" is no mount, as after chroot(), and could not be made private. */
	if (unshare(CLONE_NEWNS) != 0 ||
	    (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 && errno == EINVAL)) {
		print_message("full disk: mounting one is not permitted here\n");
		skip();
	}
	assert_non_null(mkdtemp(folder));
	assert_int_equal(0, mount("none", folder, "tmpfs", 0, "size=64k"));
	snprintf(file, sizeof(file), "%s/file", folder);
	fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	fill_up(file, ENOSPC);
	recorder_samples_in(file);
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
	recorder_put_functions(&writer);
	for (int i = 0; i < 5000 && ret == 0 && !writer_has_failed(&writer); i++)
		ret = recorder_put(&writer, 100, &why);
	writer_finish(&writer, &status);
	assert_int_equal(EPIPE, status.errnum);
}

int main(void)
{
#define WRITER_TEST(name) cmocka_unit_test_setup_teardown(name, recorder_setup, recorder_teardown)
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_several_outputs),
		WRITER_TEST(test_replaced),
		WRITER_TEST(test_link_is_followed),
		WRITER_TEST(test_nothing_recorded),
		WRITER_TEST(test_one_of_several_fails),
		WRITER_TEST(test_replacement_fails),
		WRITER_TEST(test_series),
		WRITER_TEST(test_series_keeps_no_files_open),
		WRITER_TEST(test_snapshot_of_a_series),
		WRITER_TEST(test_series_of_one_name),
		WRITER_TEST(test_snapshot),
		WRITER_TEST(test_full_device),
		WRITER_TEST(test_file_size_limit),
		WRITER_TEST(test_full_disk),
		WRITER_TEST(test_closed_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
