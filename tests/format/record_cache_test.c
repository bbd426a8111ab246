/* SPDX-License-Identifier: MIT */
/* Streams whose samples repeat: what is known of earlier ones must be what decoding says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chains.h"
#include "format/profile/profile_internal.h"
#include "format/stream/record_cache.h"
#include "format/sysprof/stream_format.h"
#include "format/text/uleb.h"

#define A 0x401000
#define B 0x402000

/** More than it takes until records are remembered. */
#define MANY 3000

struct bytes {
	uint8_t *at;
	size_t len, capacity;
};

static void put_byte(struct bytes *bytes, unsigned byte)
{
	if (bytes->len == bytes->capacity) {
		bytes->capacity = bytes->capacity ? 2 * bytes->capacity : 4096;
		bytes->at = realloc(bytes->at, bytes->capacity);
		assert_non_null(bytes->at);
	}
	bytes->at[bytes->len++] = (uint8_t)byte;
}

static void put_text(struct bytes *bytes, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put_byte(bytes, (uint8_t)text[i]);
}

static void put_number(struct bytes *bytes, uint64_t number)
{
	uint8_t encoded[FORMAT_ULEB_MAX];

	put_text(bytes, (const char *)encoded, format_uleb_encode(number, encoded));
}

/** The same number in @p more bytes than it takes. */
static void put_long_number(struct bytes *bytes, uint64_t number, int more)
{
	put_number(bytes, number);
	bytes->at[bytes->len - 1] |= 0x80;
	for (int i = 1; i < more; i++)
		put_byte(bytes, 0x80);
	put_byte(bytes, 0);
}

static struct bytes begin(void)
{
	struct bytes bytes = { 0 };

	put_text(&bytes,
		 "ljs\3\0\0\0\x80"
		 "ljp\2\0\0\0",
		 15);
	return bytes;
}

static void put_name(struct bytes *bytes, uint64_t address, const char *name)
{
	put_byte(bytes, STREAM_SYSPROF_SYMBOL_BASE + FORMAT_SYMBOL_C);
	put_number(bytes, address);
	put_number(bytes, strlen(name));
	put_text(bytes, name, strlen(name));
}

static void put_sample(struct bytes *bytes, uint64_t address)
{
	put_byte(bytes, FORMAT_STATE_INTERP);
	put_number(bytes, address);
	put_number(bytes, 0);
}

static void expect_folded(struct bytes bytes, const char *expected)
{
	FILE *file;
	char *text;

	put_byte(&bytes, STREAM_END);
	file = chains_file_of(bytes.at, bytes.len);
	text = chains_report_as(file, "folded", &(struct format_report_options){ 0 });
	assert_string_equal(expected, text);
	free(text);
	fclose(file);
	free(bytes.at);
}

/* A symbol may change what the bytes of a sample mean. */
static void test_symbols_between(void **state)
{
	struct bytes bytes = begin();

	(void)state;
	put_name(&bytes, A, "old");
	for (int i = 0; i < MANY; i++)
		put_sample(&bytes, A);
	put_name(&bytes, A, "new");
	for (int i = 0; i < MANY; i++)
		put_sample(&bytes, A);
	put_name(&bytes, B, "other");
	for (int i = 0; i < MANY; i++)
		put_sample(&bytes, A);
	expect_folded(bytes, "new 6000\nold 3000\n");
}

/* Numbers may have more bytes than they need, also the one that ends a stack: where a record ends
 * then differs by more than its bytes. */
static void test_long_numbers(void **state)
{
	struct bytes bytes = begin();

	(void)state;
	put_name(&bytes, A, "a");
	put_name(&bytes, B, "b");
	for (int i = 0; i < MANY; i++) {
		put_sample(&bytes, A);
		put_byte(&bytes, FORMAT_STATE_INTERP);
		put_long_number(&bytes, A, 1 + i % 3);
		put_long_number(&bytes, 0, 1);
		put_byte(&bytes, FORMAT_STATE_GC);
		put_number(&bytes, B);
		put_number(&bytes, 0);
		put_byte(&bytes, FORMAT_STATE_INTERP);
		put_long_number(&bytes, B, 6);
		put_long_number(&bytes, 0, 4);
	}
	expect_folded(bytes, "a 6000\nb 6000\n");
}

/* Records of many lengths, at all places of what is read at once, with stacks of Lua. */
static void test_lengths(void **state)
{
	enum { DEPTHS = 90, ROUNDS = 400 };
	struct bytes bytes = begin();
	struct format_profile *profile;
	struct failure why;
	FILE *file;

	(void)state;
	for (uint64_t i = 0; i < DEPTHS; i++)
		put_name(&bytes, A + i * 0x10000000, "f");
	for (int round = 0; round < ROUNDS; round++)
		for (uint64_t depth = 1; depth <= DEPTHS; depth++) {
			put_byte(&bytes, FORMAT_STATE_LFUNC);
			for (uint64_t i = 0; i < depth; i++) {
				put_byte(&bytes, STREAM_FRAME_LUA);
				put_number(&bytes, B + i);
				put_number(&bytes, i);
			}
			put_byte(&bytes, STREAM_END);
			for (uint64_t i = 0; i < depth; i++)
				put_number(&bytes, A + i * 0x10000000);
			put_number(&bytes, 0);
		}
	put_byte(&bytes, STREAM_END);
	file = chains_file_of(bytes.at, bytes.len);
	assert_int_equal(0, format_profile_read(file, &profile, &why));
	assert_int_equal(DEPTHS, intern_count(profile->chains));
	for (uint32_t chain = 0; chain < DEPTHS; chain++)
		assert_int_equal(ROUNDS, profile->counts[chain]);
	assert_int_equal(ROUNDS * DEPTHS, profile->states[FORMAT_STATE_LFUNC]);
	format_profile_destroy(profile);
	fclose(file);
	free(bytes.at);
}

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

static void put_any_number(struct bytes *bytes, uint64_t number)
{
	if (draw(50) == 0)
		put_long_number(bytes, number, 1 + (int)draw(3));
	else
		put_number(bytes, number);
}

/** A record of any state; equal seeds give the same one. */
static void put_any_sample(struct bytes *bytes, uint32_t seed)
{
	uint32_t kept = random_state, header, count;

	random_state = seed * 2654435761u;
	header = draw(FORMAT_STATE_COUNT);
	put_byte(bytes, header);
	if (header == FORMAT_STATE_TRACE) {
		for (int i = 0; i < 3; i++)
			put_any_number(bytes, draw(100));
		random_state = kept;
		return;
	}
	if (header >= FORMAT_STATE_LFUNC && header <= FORMAT_STATE_CFUNC) {
		count = draw(12);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t kind = 1 + draw(3);

			put_byte(bytes, kind);
			put_any_number(bytes, kind == STREAM_FRAME_BUILTIN ? draw(60)
									   : A + 0x1000 * draw(9));
			if (kind == STREAM_FRAME_LUA)
				put_any_number(bytes, draw(300));
		}
		put_byte(bytes, STREAM_END);
	}
	count = draw(12);
	for (uint32_t i = 0; i < count; i++)
		put_any_number(bytes, A + 0x800 * draw(20));
	put_any_number(bytes, 0);
	random_state = kept;
}

static void put_any_symbol(struct bytes *bytes)
{
	uint32_t kind = draw(2) ? FORMAT_SYMBOL_LUA : FORMAT_SYMBOL_C;
	char name[16];

	snprintf(name, sizeof(name), "@n%u", draw(4));
	put_byte(bytes, STREAM_SYSPROF_SYMBOL_BASE + kind);
	put_number(bytes, A + 0x1000 * draw(9));
	put_number(bytes, strlen(name));
	put_text(bytes, name, strlen(name));
	if (kind == FORMAT_SYMBOL_LUA)
		put_number(bytes, 10);
}

/** @param is_told_apart With a symbol of nothing before each sample, so that none is known. */
static char *read_any(bool is_told_apart)
{
	struct bytes bytes = begin();
	FILE *file;
	char *text;

	random_state = 7;
	put_name(&bytes, A, "first");
	for (int i = 0; i < 20000; i++) {
		if (draw(400) == 0)
			put_any_symbol(&bytes);
		if (is_told_apart)
			put_name(&bytes, UINT64_C(1) << 50, "nothing");
		put_any_sample(&bytes, draw(80));
	}
	put_byte(&bytes, STREAM_END);
	file = chains_file_of(bytes.at, bytes.len);
	text = chains_report_as(file, "folded", &(struct format_report_options){ 0 });
	fclose(file);
	free(bytes.at);
	return text;
}

static void test_same_as_decoded(void **state)
{
	char *known = read_any(false), *decoded = read_any(true);

	(void)state;
	assert_string_equal(decoded, known);
	free(known);
	free(decoded);
}

static void test_table(void **state)
{
	struct record_cache record_cache = { 0 };
	struct cached_record put = { 0 };
	const struct cached_record *found;
	uint32_t known = 0;

	(void)state;
	/* So many that some give way, to those of a later generation, too. */
	for (uint64_t generation = 0; generation < 2; generation++)
		for (uint32_t i = 0; i < 400000; i++) {
			put.chain = i;
			put.key = (uint32_t)generation;
			assert_null(record_cache_find(&record_cache, (const uint8_t *)&i, sizeof(i),
						      generation));
			record_cache_put(&record_cache, generation, &put);
			if (i < 2000)
				continue;
			found = record_cache_find(&record_cache, (const uint8_t *)&i, sizeof(i),
						  generation);
			assert_non_null(found);
			assert_int_equal(i, found->chain);
			assert_int_equal(generation, found->key);
			assert_null(record_cache_find(&record_cache, (const uint8_t *)&i, sizeof(i),
						      generation + 1));
			assert_null(record_cache_find(&record_cache, (const uint8_t *)&i,
						      sizeof(i) - 1, generation));
		}
	for (uint32_t i = 0; i < 400000; i++) {
		found = record_cache_find(&record_cache, (const uint8_t *)&i, sizeof(i), 1);
		known += found != NULL;
		assert_true(!found || (found->chain == i && found->key == 1));
	}
	assert_in_range(known, 200000, 1 << 18);
	record_cache_deinit(&record_cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_between), cmocka_unit_test(test_long_numbers),
		cmocka_unit_test(test_lengths),		cmocka_unit_test(test_same_as_decoded),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
