/* SPDX-License-Identifier: MIT */
/* Ranges of an image: what was asked for, what is there, and readers over it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attach/image/image_internal.h"

static int setup(void **state)
{
	*state = attach_image_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	attach_image_destroy(*state);
	return 0;
}

static void add(struct attach_image *image, uint64_t address, const void *bytes, size_t len)
{
	struct failure why;

	assert_int_equal(0, attach_image_add(image, remote_addr_make(address), bytes, len, &why));
}

static void expect_read(const struct attach_reader *reader, uint64_t address, const char *bytes,
			size_t len)
{
	char got[256];
	struct failure why;

	assert_true(len <= sizeof(got));
	assert_int_equal(0, attach_read(reader, remote_addr_make(address), got, len, &why));
	assert_memory_equal(bytes, got, len);
}

static void expect_fault(const struct attach_reader *reader, uint64_t address, size_t len,
			 uint64_t fault)
{
	char got[256];
	struct failure why = { 0 };

	assert_int_equal(-1, attach_read(reader, remote_addr_make(address), got, len, &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_int_equal(fault, why.address);
}

static void test_read_spans_ranges(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *reader = attach_image_reader(image);

	add(image, 0x1008, "ijkl", 4); /* out of order */
	add(image, 0x1000, "abcdefgh", 8);
	expect_read(reader, 0x1000, "abcdefghijkl", 12);
	expect_read(reader, 0x1007, "hi", 2);
	expect_read(reader, 0x100b, "l", 1);
	expect_read(reader, 0x9999, "", 0);
	expect_fault(reader, 0x1000, 13, 0x100c);
	expect_fault(reader, 0xfff, 2, 0xfff);
	expect_fault(reader, 0x100c, 1, 0x100c);
}

static void test_overlapping_ranges(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *reader = attach_image_reader(image);

	add(image, 0x1000, "abcdefgh", 8);
	add(image, 0x1004, "efghijkl", 8);
	add(image, 0x1002, "cd", 2);
	expect_read(reader, 0x1000, "abcdefghijkl", 12);
	expect_fault(reader, 0x1003, 10, 0x100c);
}

static void test_hole(void **state)
{
	struct attach_image *image = *state;

	add(image, 0x1000, "abcd", 4);
	add(image, 0x1005, "fgh", 3);
	expect_fault(attach_image_reader(image), 0x1002, 4, 0x1004);
}

static void test_peek(void **state)
{
	struct attach_image *image = *state;
	size_t len = 99;

	assert_null(attach_image_peek(image, remote_addr_make(0x1000), 1, &len));
	assert_int_equal(0, len);
	add(image, 0x1000, "abcdefgh", 8);
	assert_memory_equal("cdef", attach_image_peek(image, remote_addr_make(0x1002), 4, &len), 4);
	assert_int_equal(4, len);
	assert_memory_equal("gh", attach_image_peek(image, remote_addr_make(0x1006), 400, &len), 2);
	assert_int_equal(2, len);
	assert_null(attach_image_peek(image, remote_addr_make(0x1008), 1, &len));
	assert_null(attach_image_peek(image, remote_addr_make(0), SIZE_MAX, &len));
}

static void test_wanted_is_not_there_yet(void **state)
{
	struct attach_image *image = *state;
	struct failure why;
	size_t len;

	assert_int_equal(0, attach_image_want(image, remote_addr_make(0x1000), 8, &why));
	assert_null(attach_image_peek(image, remote_addr_make(0x1000), 8, &len));
	expect_fault(attach_image_reader(image), 0x1000, 8, 0x1000);
}

static void test_added_although_wanted(void **state)
{
	struct attach_image *image = *state;
	struct failure why;

	assert_int_equal(0, attach_image_want(image, remote_addr_make(0x1000), 8, &why));
	assert_int_equal(0, attach_image_want(image, remote_addr_make(0x2000), 4, &why));
	add(image, 0x1000, "abcdefgh", 8);
	expect_read(attach_image_reader(image), 0x1000, "abcdefgh", 8);
	expect_fault(attach_image_reader(image), 0x2000, 4, 0x2000);
}

static void test_edges_of_memory(void **state)
{
	struct attach_image *image = *state;
	struct failure why;

	add(image, UINT64_MAX - 8, "abcdefgh", 8);
	expect_read(attach_image_reader(image), UINT64_MAX - 8, "abcdefgh", 8);
	expect_fault(attach_image_reader(image), UINT64_MAX - 8, 9, UINT64_MAX);
	add(image, 0, "0", 1);
	expect_read(attach_image_reader(image), 0, "0", 1);
	assert_int_equal(0, attach_image_want(image, remote_addr_make(5), 0, &why));
	assert_int_equal(-1, attach_image_want(image, remote_addr_make(UINT64_MAX), 2, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(UINT64_MAX, why.address);
	assert_int_equal(-1, attach_image_want(image, remote_addr_make(16), SIZE_MAX, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
}

static void test_limit_of_bytes(void **state)
{
	struct attach_image *image = *state;
	const struct remote_addr at = remote_addr_make(0x10000);
	struct failure why;

	assert_int_equal(-1, attach_image_want(image, at, ATTACH_IMAGE_MAX_BYTES + 1, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(0, attach_image_want(image, at, ATTACH_IMAGE_MAX_BYTES - 4, &why));
	assert_int_equal(-1, attach_image_want(image, at, 5, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	add(image, 0x1000, "abcd", 4);
	expect_read(attach_image_reader(image), 0x1000, "abcd", 4);
	/* Its memory is used again. */
	attach_image_clear(image);
	expect_fault(attach_image_reader(image), 0x1000, 4, 0x1000);
	assert_int_equal(0, attach_image_want(image, at, ATTACH_IMAGE_MAX_BYTES, &why));
}

static void test_limit_of_ranges(void **state)
{
	struct attach_image *image = *state;
	struct failure why;

	for (uint64_t i = 0; i < ATTACH_IMAGE_MAX_RANGES; i++)
		add(image, i * 16, &i, sizeof(i));
	assert_int_equal(-1, attach_image_want(image, remote_addr_make(1 << 30), 1, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	/* It would take minutes, were all looked through for each. */
	attach_image_order(image);
	for (uint64_t i = ATTACH_IMAGE_MAX_RANGES; i-- > 0;)
		expect_read(attach_image_reader(image), i * 16, (const char *)&i, sizeof(i));
}

/* ---- Order ------------------------------------------------------------------------------ */

enum { SPREAD = 1000, SPREAD_BYTES = 8, SPREAD_DISTANCE = 4096 };

/* Neither up nor down. */
static uint64_t spread_at(uint64_t i)
{
	return 0x10000 + i * 7 % SPREAD * SPREAD_DISTANCE;
}

static void add_spread(struct attach_image *image)
{
	for (uint64_t i = 0; i < SPREAD; i++)
		add(image, spread_at(i), &i, SPREAD_BYTES);
}

static void expect_spread(struct attach_image *image)
{
	const struct attach_reader *reader = attach_image_reader(image);

	for (uint64_t i = 0; i < SPREAD; i++) {
		expect_read(reader, spread_at(i), (const char *)&i, SPREAD_BYTES);
		expect_fault(reader, spread_at(i) + SPREAD_BYTES, 1, spread_at(i) + SPREAD_BYTES);
		expect_fault(reader, spread_at(i) - 1, 1, spread_at(i) - 1);
	}
}

static void test_order_changes_nothing(void **state)
{
	struct attach_image *image = *state;

	attach_image_order(image);
	add_spread(image);
	expect_spread(image);
	attach_image_order(image);
	attach_image_order(image);
	expect_spread(image);
	/* What comes later is found, too, and not what was there before. */
	attach_image_clear(image);
	expect_fault(attach_image_reader(image), spread_at(1), 1, spread_at(1));
	add(image, 0x42, "xyz", 3);
	expect_read(attach_image_reader(image), 0x42, "xyz", 3);
	add_spread(image);
	attach_image_order(image);
	add(image, 0x52, "abc", 3);
	expect_read(attach_image_reader(image), 0x52, "abc", 3);
	expect_spread(image);
}

/* Of ranges that overlap the one that was added first counts, as it does without order. */
static void test_order_of_overlapping_ranges(void **state)
{
	static const char first[64] = "first", large[2 * SPREAD_DISTANCE] = "large";
	struct attach_image *image = *state;
	const struct attach_reader *reader = attach_image_reader(image);

	add(image, spread_at(1), first, sizeof(first));
	add_spread(image);
	add(image, spread_at(1), large, sizeof(large));
	attach_image_order(image);
	expect_read(reader, spread_at(1), "first", 5);
	expect_read(reader, spread_at(1) + sizeof(first), large + sizeof(first), 8);
	/* It reaches beyond those that begin behind it. */
	expect_read(reader, spread_at(1) + SPREAD_DISTANCE + SPREAD_BYTES, large + SPREAD_DISTANCE,
		    8);
	expect_fault(reader, spread_at(1) + 3 * SPREAD_DISTANCE - 1, 1,
		     spread_at(1) + 3 * SPREAD_DISTANCE - 1);
}

static void test_order_of_a_range_that_grows(void **state)
{
	struct attach_image *image = *state;
	struct failure why;

	add_spread(image);
	attach_image_order(image);
	assert_int_equal(0,
			 image_append(image, spread_at(SPREAD - 1) + SPREAD_BYTES, "abc", 3, &why));
	assert_int_equal(SPREAD, image->range_count);
	expect_read(attach_image_reader(image), spread_at(SPREAD - 1) + SPREAD_BYTES, "abc", 3);
	expect_read(attach_image_reader(image), spread_at(1), "\1\0\0\0\0\0\0", SPREAD_BYTES);
}

/* ---- Readers behind --------------------------------------------------------------------- */

/** Memory that holds at each address its low byte, and counts reads. */
struct fake {
	struct attach_reader reader;
	unsigned reads;
	uint64_t end;
};

static int fake_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	struct fake *fake = self;
	uint8_t *to = ret_bytes;

	fake->reads++;
	for (size_t i = 0; i < len; i++) {
		if (address.value + i >= fake->end)
			return failure_set(why, FAILURE_FAULT, 0, 0, address.value + i, "fake");
		to[i] = (uint8_t)(address.value + i);
	}
	return 0;
}

static void init_fake(struct fake *fake)
{
	*fake = (struct fake){ .reader = { .read = fake_read, .self = fake }, .end = 0x200000 };
}

static void test_behind_without_keep(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *both;
	struct failure why = { .kind = FAILURE_NONE };
	struct fake fake;
	char text[3];

	init_fake(&fake);
	both = attach_image_reader_behind(image, &fake.reader, false);
	add(image, 0x41, "xyz", 3);
	expect_read(both, 0x41, "xyz", 3);
	assert_int_equal(0, fake.reads);
	expect_read(both, 0x61, "abc", 3);
	expect_read(both, 0x61, "abc", 3);
	assert_int_equal(2, fake.reads);
	/* Missing in the image is no failure. */
	assert_int_equal(0, attach_read(both, remote_addr_make(0x61), text, 3, &why));
	assert_int_equal(FAILURE_NONE, why.kind);
	expect_fault(attach_image_reader(image), 0x61, 3, 0x61);
	expect_fault(both, 0x1fffff, 4, 0x200000);
}

static void test_behind_with_keep(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *both;
	struct fake fake;

	init_fake(&fake);
	both = attach_image_reader_behind(image, &fake.reader, true);
	expect_read(both, 0x61, "abc", 3);
	expect_read(both, 0x61, "abc", 3);
	expect_read(both, 0x62, "bc", 2);
	assert_int_equal(1, fake.reads);
	expect_read(attach_image_reader(image), 0x61, "abc", 3);
	expect_read(both, 0x63, "cdef", 4);
	assert_int_equal(2, fake.reads);
	expect_read(attach_image_reader(image), 0x61, "abcdef", 6);
	expect_fault(both, 0x1fffff, 4, 0x200000);
	expect_fault(attach_image_reader(image), 0x1fffff, 1, 0x1fffff);
}

static void test_nothing_behind(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *both = attach_image_reader_behind(image, NULL, true);

	add(image, 0x41, "xyz", 3);
	expect_read(both, 0x42, "yz", 2);
	expect_fault(both, 0x42, 3, 0x44);
}

/* What cannot be kept is still read: a reader fails for the target's reasons only. */
static void test_keep_in_a_full_image(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *both;
	struct failure why;
	struct fake fake;

	init_fake(&fake);
	both = attach_image_reader_behind(image, &fake.reader, true);
	assert_int_equal(0, attach_image_want(image, remote_addr_make(1 << 30),
					      ATTACH_IMAGE_MAX_BYTES - 1, &why));
	expect_read(both, 0x61, "abc", 3);
	expect_read(both, 0x61, "abc", 3);
	assert_int_equal(2, fake.reads);
}

/* ---- Strings ---------------------------------------------------------------------------- */

static void test_strings(void **state)
{
	struct attach_image *image = *state;
	const struct attach_reader *reader = attach_image_reader(image);
	char bytes[256], text[256];
	struct failure why;

	memset(bytes, 'x', sizeof(bytes));
	bytes[100] = '\0';
	add(image, 0x1000, bytes, sizeof(bytes));
	/* Whole, from any place in a line of memory. */
	for (uint64_t skip = 0; skip <= 100; skip++) {
		assert_int_equal(0, attach_read_string(reader, remote_addr_make(0x1000 + skip),
						       text, sizeof(text), &why));
		assert_int_equal(100 - skip, strlen(text));
	}
	/* Cut. */
	for (size_t size = 1; size <= 102; size++) {
		memset(text, '#', sizeof(text));
		assert_int_equal(
			0, attach_read_string(reader, remote_addr_make(0x1000), text, size, &why));
		assert_int_equal(size - 1 < 100 ? size - 1 : 100, strlen(text));
		assert_int_equal('#', text[size]);
	}
	/* No end before the memory's end. */
	assert_int_equal(-1, attach_read_string(reader, remote_addr_make(0x1000 + 101), text,
						sizeof(text), &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_int_equal(0x1100, why.address);
}

/* ---- Notes ------------------------------------------------------------------------------ */

static void test_notes(void **state)
{
	struct attach_image *image = *state;
	struct failure why;
	size_t len = 99;

	assert_null(attach_image_note(image, "maps", &len));
	assert_int_equal(0, len);
	assert_int_equal(0, attach_image_set_note(image, "maps", "text", 4, &why));
	assert_int_equal(0, attach_image_set_note(image, "empty", NULL, 0, &why));
	assert_memory_equal("text", attach_image_note(image, "maps", &len), 4);
	assert_int_equal(4, len);
	assert_non_null(attach_image_note(image, "empty", &len));
	assert_int_equal(0, len);
	assert_int_equal(0, attach_image_set_note(image, "fifteen_letters", "x", 1, &why));
	assert_int_equal(-1, attach_image_set_note(image, "sixteen_letters_", "x", 1, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	for (int i = 3; i < IMAGE_NOTES; i++)
		assert_int_equal(0, attach_image_set_note(image, "more", "x", 1, &why));
	assert_int_equal(-1, attach_image_set_note(image, "more", "x", 1, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	attach_image_clear(image);
	assert_null(attach_image_note(image, "maps", &len));
	assert_int_equal(0, attach_image_set_note(image, "maps", "text", 4, &why));
}

int main(void)
{
#define IMAGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		IMAGE_TEST(test_read_spans_ranges),
		IMAGE_TEST(test_overlapping_ranges),
		IMAGE_TEST(test_hole),
		IMAGE_TEST(test_peek),
		IMAGE_TEST(test_wanted_is_not_there_yet),
		IMAGE_TEST(test_added_although_wanted),
		IMAGE_TEST(test_edges_of_memory),
		IMAGE_TEST(test_limit_of_bytes),
		IMAGE_TEST(test_limit_of_ranges),
		IMAGE_TEST(test_order_changes_nothing),
		IMAGE_TEST(test_order_of_overlapping_ranges),
		IMAGE_TEST(test_order_of_a_range_that_grows),
		IMAGE_TEST(test_behind_without_keep),
		IMAGE_TEST(test_behind_with_keep),
		IMAGE_TEST(test_nothing_behind),
		IMAGE_TEST(test_keep_in_a_full_image),
		IMAGE_TEST(test_strings),
		IMAGE_TEST(test_notes),
	};

	attach_image_destroy(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
