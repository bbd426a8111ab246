/* SPDX-License-Identifier: MIT */
/* Images as files: a round trip, and hostile bytes in a buffer that ends at a guard page. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/image/image_internal.h"

#define PAGE	       4096
#define FILE_MAX_BYTES 2048
/** Bytes in front of the registers: what the file is, and of which architecture. */
#define HEAD 16

/** A folder of our own, and the saved image as bytes. */
struct saved {
	char folder[64], path[80];
	uint8_t bytes[FILE_MAX_BYTES];
	size_t len;
};

static struct attach_image *make_image(void)
{
	struct attach_image *image = attach_image_create();
	struct attach_registers *registers = attach_image_registers(image);
	struct failure why;

	for (unsigned i = 0; i < ATTACH_REG_COUNT; i++)
		registers->r[i] = UINT64_C(0x0102030405060708) * (i + 1);
	registers->syscall = -1;
	attach_image_add(image, remote_addr_make(0x7fff00001000), "abcdefgh", 8, &why);
	attach_image_want(image, remote_addr_make(0x9000), 16, &why); /* never read: not saved */
	attach_image_add(image, remote_addr_make(0x1000), "0123456789abcdef0", 17, &why);
	attach_image_set_note(image, "maps", "1000-2000 r-xp", 14, &why);
	attach_image_set_note(image, "empty", NULL, 0, &why);
	return image;
}

static int setup(void **state)
{
	static struct saved saved;
	struct attach_image *image = make_image();
	struct failure why;
	FILE *file;

	snprintf(saved.folder, sizeof(saved.folder), "/tmp/image_file_test.XXXXXX");
	if (!mkdtemp(saved.folder))
		return -1;
	snprintf(saved.path, sizeof(saved.path), "%s/image", saved.folder);
	if (attach_image_save(image, saved.path, &why) != 0)
		return -1;
	attach_image_destroy(image);
	file = fopen(saved.path, "re");
	if (!file)
		return -1;
	saved.len = fread(saved.bytes, 1, sizeof(saved.bytes), file);
	fclose(file);
	*state = &saved;
	return 0;
}

static int teardown(void **state)
{
	struct saved *saved = *state;

	unlink(saved->path);
	return rmdir(saved->folder);
}

/* Load from the last bytes in front of a page that must not be touched. */
static int load(const uint8_t *bytes, size_t len, struct attach_image **ret_image,
		struct failure *why)
{
	uint8_t *room =
		mmap(NULL, PAGE * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	assert_true(room != MAP_FAILED && len <= PAGE);
	assert_int_equal(0, mprotect(room + PAGE, PAGE, PROT_NONE));
	memcpy(room + PAGE - len, bytes, len);
	ret = attach_image_load(room + PAGE - len, len, ret_image, why);
	munmap(room, PAGE * 2);
	return ret;
}

static void expect_invalid(const uint8_t *bytes, size_t len)
{
	struct attach_image *image;
	struct failure why = { 0 };

	assert_int_equal(-1, load(bytes, len, &image, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_true(why.address <= len);
}

static void expect_made(struct attach_image *image)
{
	struct attach_image *made = make_image();
	struct failure why;
	char text[32];
	size_t len;

	assert_memory_equal(attach_image_registers(made), attach_image_registers(image),
			    sizeof(struct attach_registers));
	assert_int_equal(0, attach_read(attach_image_reader(image), remote_addr_make(0x1000), text,
					17, &why));
	assert_memory_equal("0123456789abcdef0", text, 17);
	assert_memory_equal("abcdefgh",
			    attach_image_peek(image, remote_addr_make(0x7fff00001000), 99, &len),
			    8);
	assert_int_equal(8, len);
	assert_null(attach_image_peek(image, remote_addr_make(0x9000), 1, &len));
	assert_memory_equal("1000-2000 r-xp", attach_image_note(image, "maps", &len), 14);
	assert_int_equal(14, len);
	assert_non_null(attach_image_note(image, "empty", &len));
	assert_int_equal(0, len);
	attach_image_destroy(made);
}

static void test_round_trip(void **state)
{
	const struct saved *saved = *state;
	struct attach_image *image;
	struct failure why;
	struct stat status;

	/* Memory of a process that others may not read. */
	assert_int_equal(0, stat(saved->path, &status));
	assert_int_equal(0600, status.st_mode & 07777);

	assert_int_equal(0, load(saved->bytes, saved->len, &image, &why));
	expect_made(image);
	attach_image_destroy(image);
	assert_int_equal(0, attach_image_load_file(saved->path, &image, &why));
	expect_made(image);
	attach_image_destroy(image);
}

static void test_save_errors(void **state)
{
	const struct saved *saved = *state;
	struct attach_image *image = make_image();
	struct failure why;
	char path[128];

	assert_int_equal(-1, attach_image_save(image, saved->path, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EEXIST, why.errnum);
	snprintf(path, sizeof(path), "%s/none/image", saved->folder);
	assert_int_equal(-1, attach_image_save(image, path, &why));
	assert_int_equal(ENOENT, why.errnum);
	attach_image_destroy(image);
	assert_int_equal(-1, attach_image_load_file(path, &image, &why));
	assert_int_equal(ENOENT, why.errnum);
	assert_int_equal(-1, attach_image_load_file("/dev/null", &image, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_int_equal(-1, attach_image_load_file(saved->folder, &image, &why));
}

static void test_truncations(void **state)
{
	const struct saved *saved = *state;

	for (size_t len = 0; len < saved->len; len++)
		expect_invalid(saved->bytes, len);
}

/* A changed byte gives another image or an error, never a read outside. */
static void test_corruptions(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x10, 0x7f, 0x80, 0xff };
	const struct saved *saved = *state;
	uint8_t bytes[FILE_MAX_BYTES], content[64];

	for (size_t at = 0; at < saved->len; at++) {
		for (size_t i = 0; i < sizeof(flips); i++) {
			struct attach_image *image;
			struct failure why = { 0 };
			size_t len;

			memcpy(bytes, saved->bytes, saved->len);
			bytes[at] ^= flips[i];
			if (load(bytes, saved->len, &image, &why) != 0) {
				assert_int_equal(FAILURE_INVALID, why.kind);
				assert_true(why.address <= saved->len);
				continue;
			}
			attach_read(attach_image_reader(image), remote_addr_make(0x1000), content,
				    17, &why);
			attach_image_note(image, "maps", &len);
			attach_image_destroy(image);
		}
	}
}

static void put(uint8_t *bytes, size_t at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		bytes[at + (size_t)i] = (uint8_t)(value >> (8 * i));
}

static void test_hostile_numbers(void **state)
{
	static const uint64_t values[] = { ATTACH_IMAGE_MAX_RANGES + 1,
					   (uint64_t)1 << 31,
					   (uint64_t)1 << 32,
					   (uint64_t)1 << 61,
					   INT64_MAX,
					   (uint64_t)1 << 63,
					   UINT64_MAX - 7,
					   UINT64_MAX };
	const size_t registers = HEAD, ranges = registers + 8 + ATTACH_REG_COUNT * 8 + 8,
		     range_len = ranges + 16, notes = ranges + 8 + 16 + 8 + 16 + 17,
		     note_len = notes + 8 + IMAGE_NOTE_NAME;
	const size_t places[] = { registers, ranges, range_len, notes, note_len };
	const struct saved *saved = *state;
	uint8_t bytes[FILE_MAX_BYTES];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			memcpy(bytes, saved->bytes, saved->len);
			put(bytes, places[i], values[k]);
			expect_invalid(bytes, saved->len);
		}
	}
	/* A range that wraps around the end of memory. */
	memcpy(bytes, saved->bytes, saved->len);
	put(bytes, ranges + 8, UINT64_MAX - 3);
	expect_invalid(bytes, saved->len);
}

static void expect_refused(uint8_t *bytes, size_t len, uint64_t machine, const char *step)
{
	struct attach_image *image;
	struct failure why = { 0 };

	put(bytes, 8, machine);
	assert_int_equal(-1, load(bytes, len, &image, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	assert_string_equal(step, why.step);
}

static void test_other_machine(void **state)
{
	const struct saved *saved = *state;
	uint8_t bytes[FILE_MAX_BYTES];

	memcpy(bytes, saved->bytes, saved->len);
#if defined(__x86_64__)
	expect_refused(bytes, saved->len, EM_AARCH64, "read an image of an AArch64 process");
#else
	expect_refused(bytes, saved->len, EM_X86_64, "read an image of an x86-64 process");
#endif
	expect_refused(bytes, saved->len, EM_RISCV, "read an image of an unknown architecture");
	expect_refused(bytes, saved->len, UINT64_MAX, "read an image of an unknown architecture");
}

/* The first version did not name the architecture, which was x86-64. */
static void test_first_version(void **state)
{
	const struct saved *saved = *state;
	uint8_t bytes[FILE_MAX_BYTES];
	struct attach_image *image;
	struct failure why;

	memcpy(bytes, "LJIMAGE1", 8);
	memcpy(bytes + 8, saved->bytes + HEAD, saved->len - HEAD);
#if defined(__x86_64__)
	assert_int_equal(0, load(bytes, saved->len - 8, &image, &why));
	expect_made(image);
	attach_image_destroy(image);
#else
	assert_int_equal(-1, load(bytes, saved->len - 8, &image, &why));
	assert_string_equal("read an image of an x86-64 process", why.step);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	cmocka_unit_test(test_save_errors),
		cmocka_unit_test(test_truncations),	cmocka_unit_test(test_corruptions),
		cmocka_unit_test(test_hostile_numbers), cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_first_version),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
