/* SPDX-License-Identifier: MIT */
/* Compressed output: what gzip(1) and ljreport read is what was put, at any time. */
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
#include <unistd.h>

#include <cmocka.h>

#include "format/file/gzip_read.h"
#include "format/file/gzip_write.h"
#include "format/writer.h"

#define END "\x80"

enum { CONTENT_MAX = 1 << 20, PAGE = 4096 };

struct output {
	FILE *file;
	struct format_sink *sink;
	uint8_t *content;
	size_t len;
};

static void begin(struct output *output)
{
	output->file = tmpfile();
	assert_non_null(output->file);
	assert_int_equal(0, format_sink_create(dup(fileno(output->file)), &output->sink, NULL));
	format_sink_compress(output->sink);
	output->content = malloc(CONTENT_MAX);
	assert_non_null(output->content);
	output->len = 0;
}

static void end(struct output *output)
{
	format_sink_destroy(output->sink);
	fclose(output->file);
	free(output->content);
}

static void put(struct output *output, const void *bytes, size_t len)
{
	assert_true(output->len + len <= CONTENT_MAX);
	memcpy(output->content + output->len, bytes, len);
	output->len += len;
	assert_int_equal(0, format_sink_put(output->sink, bytes, len, NULL));
}

/* @return 0 or -1, and what could be read until then. */
static int unpack_all(FILE *file, uint8_t *ret_bytes, size_t *ret_len, struct failure *why)
{
	struct unpack *unpack;
	size_t len;
	int result;

	*ret_len = 0;
	rewind(file);
	assert_int_equal(0, unpack_create(file, &unpack, why));
	/* Small pieces, so that members begin and end within them. */
	while ((result = unpack_read(unpack, ret_bytes + *ret_len, 777, &len, why)) == 0 && len)
		*ret_len += len;
	unpack_destroy(unpack);
	return result;
}

/* The content and the trailer, by our reader and by gzip's, which sees each old trailer gone. */
static void expect_content(struct output *output)
{
	uint8_t *bytes = malloc(CONTENT_MAX + 1024);
	char command[64];
	struct failure why;
	size_t len;
	FILE *gzip;

	assert_non_null(bytes);
	assert_int_equal(0, unpack_all(output->file, bytes, &len, &why));
	assert_int_equal(output->len + 1, len);
	assert_memory_equal(output->content, bytes, output->len);
	assert_int_equal(0x80, bytes[output->len]);
	snprintf(command, sizeof(command), "gzip -dc < /proc/%d/fd/%d", (int)getpid(),
		 fileno(output->file));
	gzip = popen(command, "r");
	assert_non_null(gzip);
	assert_int_equal(len, fread(bytes, 1, CONTENT_MAX + 1024, gzip));
	assert_int_equal(0, pclose(gzip));
	assert_memory_equal(output->content, bytes, output->len);
	free(bytes);
}

/* Commits of any length, so that the trailer is at every place of a page and would be in two. */
static void test_commits(void **state)
{
	struct output output;
	uint8_t block[600];

	(void)state;
	begin(&output);
	assert_int_equal(0, format_sink_commit(output.sink, END, 1, false, NULL));
	expect_content(&output);
	for (unsigned i = 0; i < 400; i++) {
		struct stat status;

		for (size_t k = 0; k < sizeof(block); k++)
			block[k] = i % 3 ? (uint8_t)rand() : (uint8_t)i;
		put(&output, block, (size_t)rand() % sizeof(block));
		assert_int_equal(0, format_sink_commit(output.sink, END, 1, i == 399, NULL));
		assert_int_equal(0, fstat(fileno(output.file), &status));
		assert_int_equal(status.st_size, format_sink_bytes(output.sink));
		assert_true((status.st_size - 1) / PAGE ==
			    (status.st_size - 1 - PACK_STORED_MORE) / PAGE);
		if (i % 20 == 0)
			expect_content(&output);
	}
	expect_content(&output);
	/* With nothing new the file stays as it is. */
	assert_int_equal(0, format_sink_commit(output.sink, END, 1, true, NULL));
	expect_content(&output);
	end(&output);
}

static void test_size(void **state)
{
	struct output output;

	(void)state;
	begin(&output);
	for (unsigned i = 0; i < 5000; i++)
		put(&output, "the same chain again and again, with a number", 45);
	assert_int_equal(0, format_sink_commit(output.sink, END, 1, true, NULL));
	assert_true(format_sink_bytes(output.sink) < output.len / 50);
	expect_content(&output);
	end(&output);
}

/* In a pipe the trailer comes once. */
static void test_pipe(void **state)
{
	struct format_sink *sink;
	uint8_t bytes[64];
	struct failure why;
	size_t len;
	FILE *file;
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe(ends));
	assert_int_equal(0, format_sink_create(ends[1], &sink, NULL));
	format_sink_compress(sink);
	format_sink_put(sink, "abc", 3, NULL);
	assert_int_equal(0, format_sink_commit(sink, END, 1, false, NULL));
	format_sink_put(sink, "def", 3, NULL);
	assert_int_equal(0, format_sink_commit(sink, END, 1, true, NULL));
	format_sink_destroy(sink);
	file = fdopen(ends[0], "r");
	assert_int_equal(0, unpack_all(file, bytes, &len, &why));
	assert_int_equal(7, len);
	assert_memory_equal("abcdef" END, bytes, 7);
	fclose(file);
}

/* A disk that is full for a while: the file stays whole, and what waits is written later. */
static void test_full_disk(void **state)
{
	struct output output;
	struct rlimit old, limit;
	struct failure why;
	uint8_t block[4096];

	(void)state;
	begin(&output);
	put(&output, "first", 5);
	assert_int_equal(0, format_sink_commit(output.sink, END, 1, false, NULL));
	for (size_t k = 0; k < sizeof(block); k++)
		block[k] = (uint8_t)rand();
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &old));
	limit = (struct rlimit){ .rlim_cur = 1000, .rlim_max = old.rlim_max };
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
	assert_int_equal(0, format_sink_put(output.sink, block, sizeof(block), NULL));
	assert_int_equal(-1, format_sink_commit(output.sink, END, 1, false, &why));
	assert_int_equal(EFBIG, why.errnum);
	expect_content(&output);
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &old));
	assert_int_equal(0, format_sink_commit(output.sink, END, 1, true, NULL));
	memcpy(output.content + output.len, block, sizeof(block));
	output.len += sizeof(block);
	expect_content(&output);
	end(&output);
}

/* ---- Reading ---------------------------------------------------------------------------- */

static FILE *make_file(const void *bytes, size_t len)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(len, fwrite(bytes, 1, len, file));
	return file;
}

static void expect_reading(const void *bytes, size_t len, int result, const char *content)
{
	FILE *file = make_file(bytes, len);
	uint8_t got[4096];
	struct failure why = { 0 };
	size_t got_len;

	assert_int_equal(result, unpack_all(file, got, &got_len, &why));
	assert_int_equal(strlen(content), got_len);
	assert_memory_equal(content, got, got_len);
	if (result != 0)
		assert_int_equal(FAILURE_INVALID, why.kind);
	fclose(file);
}

static void test_plain_files(void **state)
{
	(void)state;
	expect_reading("", 0, 0, "");
	expect_reading("\x1f", 1, 0, "\x1f");
	expect_reading("plain", 5, 0, "plain");
}

static void test_damage(void **state)
{
	uint8_t bytes[256];
	size_t len, more;
	struct failure why;

	(void)state;
	assert_int_equal(0, pack_member("first", 5, bytes, &len, &why));
	pack_empty(PACK_EMPTY_MIN + 30, bytes + len);
	len += PACK_EMPTY_MIN + 30;
	pack_stored("second", 6, bytes + len);
	more = len + 6 + PACK_STORED_MORE;
	expect_reading(bytes, more, 0, "firstsecond");
	/* Cut off anywhere: what is there, and no failure, as with a plain file. */
	for (size_t cut = 2; cut < len; cut++) {
		FILE *file = make_file(bytes, cut);
		uint8_t got[64];
		size_t got_len;

		assert_int_equal(0, unpack_all(file, got, &got_len, &why));
		assert_true(got_len <= 5 && memcmp("first", got, got_len) == 0);
		fclose(file);
	}
	/* Another content than its sum says, and no member behind one. */
	bytes[len + 10 + 5] ^= 1;
	bytes[more] = 'x';
	expect_reading(bytes, more, -1, "firstrecond");
	bytes[len + 10 + 5] ^= 1;
	expect_reading(bytes, more + 1, 0, "firstsecond");
	bytes[more + 1] = 'y';
	expect_reading(bytes, more + 2, -1, "firstsecond");
}

/* A profile that ends in a member is whole where that is, however little of the member it needs. */
static void test_end(void **state)
{
	const struct {
		int change; /* of the byte so far from the end; 0: none */
		size_t cut;
		int result;
	} ends[] = { { 0, 0, 0 }, { 8, 0, -1 }, { 4, 0, -1 }, { 0, 1, -1 }, { 0, 8, -1 } };
	uint8_t bytes[256];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct failure why = { 0 };
		struct unpack *unpack;
		uint8_t first;
		size_t got;
		FILE *file;

		assert_int_equal(0, pack_member("profile" END, 8, bytes, &len, &why));
		bytes[len - (ends[i].change ? (size_t)ends[i].change : len)] ^= ends[i].change != 0;
		file = make_file(bytes, len - ends[i].cut);
		rewind(file);
		assert_int_equal(0, unpack_create(file, &unpack, &why));
		assert_int_equal(0, unpack_read(unpack, &first, 1, &got, &why));
		assert_int_equal(1, got);
		assert_int_equal(ends[i].result, unpack_finish(unpack, &why));
		unpack_destroy(unpack);
		fclose(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commits),	    cmocka_unit_test(test_size),
		cmocka_unit_test(test_pipe),	    cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_plain_files), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
