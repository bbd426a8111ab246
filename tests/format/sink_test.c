/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rounds.h"

#include "chains.h"
#include "format/file/sink.h"

#define END "\x80"

static struct format_sink *open_sink(FILE *file)
{
	struct format_sink *sink;

	assert_int_equal(0, format_sink_create(dup(fileno(file)), &sink, NULL));
	return sink;
}

static void expect_file(FILE *file, const char *content, size_t len)
{
	char bytes[256];
	ssize_t got = pread(fileno(file), bytes, sizeof(bytes), 0);

	assert_int_equal(len, got);
	assert_memory_equal(content, bytes, len);
}

static void test_commits(void **state)
{
	FILE *file = tmpfile();
	struct format_sink *sink = open_sink(file);

	(void)state;
	assert_int_equal(0, format_sink_put(sink, "abc", 3, NULL));
	expect_file(file, "", 0);
	assert_int_equal(3, format_sink_pending(sink));
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	expect_file(file, "abc" END, 4);
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	expect_file(file, "abc" END, 4);
	assert_int_equal(0, format_sink_put(sink, "def", 3, NULL));
	assert_int_equal(0, format_sink_put(sink, "", 0, NULL));
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	expect_file(file, "abcdef" END, 7);
	assert_int_equal(0, format_sink_put(sink, "g", 1, NULL));
	assert_int_equal(0, format_sink_commit(sink, END, 1, true, NULL));
	expect_file(file, "abcdefg" END, 8);
	assert_int_equal(8, format_sink_bytes(sink));
	format_sink_destroy(sink);
	fclose(file);
}

static void test_rewind(void **state)
{
	FILE *file = tmpfile();
	struct format_sink *sink = open_sink(file);

	(void)state;
	format_sink_put(sink, "abc", 3, NULL);
	format_sink_put(sink, "xyz", 3, NULL);
	format_sink_rewind(sink, 3);
	format_sink_rewind(sink, 5);
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	expect_file(file, "abc" END, 4);
	format_sink_destroy(sink);
	fclose(file);
}

/** Standard output may be a file that others have written to. */
static void test_offset_and_append(void **state)
{
	FILE *file = tmpfile();
	struct format_sink *sink;

	(void)state;
	assert_int_equal(4, write(fileno(file), "head", 4));
	sink = open_sink(file);
	format_sink_put(sink, "abc", 3, NULL);
	format_sink_commit(sink, END, 1, false, NULL);
	format_sink_put(sink, "d", 1, NULL);
	format_sink_commit(sink, END, 1, true, NULL);
	expect_file(file, "headabcd" END, 9);
	format_sink_destroy(sink);
	assert_int_equal(0, fcntl(fileno(file), F_SETFL, O_APPEND));
	sink = open_sink(file);
	format_sink_put(sink, "e", 1, NULL);
	format_sink_commit(sink, END, 1, false, NULL);
	format_sink_put(sink, "f", 1, NULL);
	format_sink_commit(sink, END, 1, true, NULL);
	expect_file(file, "headabcd" END "ef" END, 12);
	format_sink_destroy(sink);
	fclose(file);
}

/** In a pipe the trailer can come once only. */
static void test_pipe(void **state)
{
	struct format_sink *sink;
	char bytes[16];
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe(ends));
	assert_int_equal(0, format_sink_create(ends[1], &sink, NULL));
	format_sink_put(sink, "abc", 3, NULL);
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	assert_int_equal(3, read(ends[0], bytes, sizeof(bytes)));
	format_sink_put(sink, "d", 1, NULL);
	assert_int_equal(0, format_sink_commit(sink, END, 1, true, NULL));
	assert_int_equal(2, read(ends[0], bytes, sizeof(bytes)));
	assert_memory_equal("d" END, bytes, 2);
	assert_int_equal(5, format_sink_bytes(sink));
	format_sink_destroy(sink);
	close(ends[0]);
}

static void test_broken_pipe(void **state)
{
	struct failure why = { 0 };
	struct format_sink *sink;
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(0, pipe(ends));
	close(ends[0]);
	assert_int_equal(0, format_sink_create(ends[1], &sink, NULL));
	format_sink_put(sink, "abc", 3, NULL);
	assert_int_equal(-1, format_sink_commit(sink, END, 1, false, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EPIPE, why.errnum);
	format_sink_destroy(sink);
}

static void test_full_device(void **state)
{
	struct failure why = { 0 };
	struct format_sink *sink;

	(void)state;
	assert_int_equal(0, format_sink_create(open("/dev/full", O_WRONLY), &sink, NULL));
	format_sink_put(sink, "abc", 3, NULL);
	assert_int_equal(-1, format_sink_commit(sink, END, 1, true, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(ENOSPC, why.errnum);
	assert_int_equal(0, format_sink_bytes(sink));
	format_sink_destroy(sink);
}

/** The file may not grow any more in the middle of a commit: the last one stays, and once there is
 *  room again nothing is lost. */
static void test_full_disk(void **state)
{
	struct rlimit old, limit;
	struct failure why = { 0 };
	FILE *file = tmpfile();
	struct format_sink *sink = open_sink(file);

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &old));
	format_sink_put(sink, "abc", 3, NULL);
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	format_sink_put(sink, "defghi", 6, NULL);
	for (rlim_t room = 4; room < 10; room++) {
		limit = (struct rlimit){ room, old.rlim_max };
		assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
		assert_int_equal(-1, format_sink_commit(sink, END, 1, false, &why));
		assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &old));
		assert_int_equal(FAILURE_SYSTEM, why.kind);
		assert_int_equal(EFBIG, why.errnum);
		expect_file(file, "abc" END, 4);
		assert_int_equal(4, format_sink_bytes(sink));
	}
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	expect_file(file, "abcdefghi" END, 10);
	format_sink_destroy(sink);
	fclose(file);
}

static void test_bounds(void **state)
{
	static const char block[1 << 20];
	struct failure why = { 0 };
	FILE *file = tmpfile();
	struct format_sink *sink = open_sink(file);
	int result = 0;

	(void)state;
	for (int i = 0; i < 1000 && result == 0; i++)
		result = format_sink_put(sink, block, sizeof(block), &why);
	assert_int_equal(-1, result);
	assert_int_equal(FAILURE_LIMIT, why.kind);
	format_sink_destroy(sink);
	format_sink_destroy(NULL);
	fclose(file);
	assert_int_equal(-1, format_sink_create(-1, &sink, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EBADF, why.errnum);
}

/** Write samples until killed. */
static _Noreturn void write_for_ever(const char *path, bool gzip)
{
	struct chains chains = { .functions = format_functions_create() };
	const struct format_writer_ops *ops = format_writer_find("sysprof");
	struct format_options options = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (format_sink_create(fd, &chains.sink, NULL))
		_exit(1);
	if (gzip)
		format_sink_compress(chains.sink);
	if (ops->open(chains.sink, chains.functions, &options, &chains.writer, NULL))
		_exit(1);
	for (uint32_t i = 0;; i++) {
		chains_push(&chains, chains_lua(&chains, 0x1000000 + i * 0x100, "@a.lua", i, "f"),
			    0x1000050 + i * 0x100, i);
		chains_sample(&chains, FORMAT_STATE_LFUNC);
		if (i % 3 == 0 && ops->commit(chains.writer, false, NULL))
			_exit(1);
	}
}

/* What a stall needs once is not kept for ever, and the next commit is as good. */
static void test_large_commit(void **state)
{
	FILE *file = tmpfile();
	struct format_sink *sink = open_sink(file);
	const char bytes[4096] = { 0 };
	const size_t count = 1024;

	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(0, format_sink_put(sink, bytes, sizeof(bytes), NULL));
	assert_true(format_sink_capacity(sink) >= count * sizeof(bytes));
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	assert_in_range(format_sink_capacity(sink), 0, 256 << 10);
	assert_int_equal(0, format_sink_put(sink, "abc", 3, NULL));
	assert_int_equal(0, format_sink_commit(sink, END, 1, true, NULL));
	assert_int_equal(count * sizeof(bytes) + 4, format_sink_bytes(sink));
	format_sink_destroy(sink);
	fclose(file);
}

/** Whenever the writer dies, and while it lives, the file is a whole profile. */
static void kill_writers(bool gzip)
{
	char path[] = "/tmp/ljprof-sink-XXXXXX";
	int fd = mkstemp(path);
	bool grew = false;

	assert_true(fd >= 0);
	for (int i = 0; i < (int)test_length(20, 60); i++) {
		struct timespec wait = { .tv_nsec = 200000 + (long)(rand() % 4000) * 1000 };
		struct format_profile *profile;
		struct failure why = { 0 };
		struct stat status;
		pid_t child;
		FILE *file;

		assert_int_equal(0, ftruncate(fd, 0));
		child = fork();
		if (child == 0)
			write_for_ever(path, gzip);
		do {
			nanosleep(&wait, NULL);
			assert_int_equal(0, fstat(fd, &status));
		} while (status.st_size == 0);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		file = fopen(path, "rb");
		if (format_profile_read(file, &profile, &why))
			fail_msg("%s at byte %llu", why.step, (unsigned long long)why.address);
		format_profile_destroy(profile);
		fclose(file);
		grew = grew || status.st_size > 100;
	}
	assert_true(grew);
	close(fd);
	unlink(path);
}

static void test_killed_writer(void **state)
{
	(void)state;
	kill_writers(false);
}

static void test_killed_packing_writer(void **state)
{
	(void)state;
	kill_writers(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commits),
		cmocka_unit_test(test_rewind),
		cmocka_unit_test(test_offset_and_append),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
		cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_killed_writer),
		cmocka_unit_test(test_killed_packing_writer),
		cmocka_unit_test(test_large_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
