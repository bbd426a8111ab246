/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attach/hash.h"

/* Of neighbours: each differs from all others, also where only the length does. */
static void test_words_differ(void **state)
{
	static const char bytes[64];
	uint64_t hashes[256 + sizeof(bytes)];
	size_t count = 0;

	(void)state;
	for (uint64_t word = 0; word < 256; word++)
		hashes[count++] = hash_word(word << 12, 0);
	for (size_t len = 1; len <= sizeof(bytes); len++)
		hashes[count++] = hash_words(bytes, len, 1);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(hashes[i] != hashes[k]);
}

static void test_words_go_on(void **state)
{
	const uint64_t words[] = { 4711, 12, 0, UINT64_MAX };
	uint64_t hash = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		hash = hash_word(words[i], hash);
	assert_true(hash == hash_words(words, sizeof(words), 0));
	assert_true(hash_words(words, 0, 17) == 17);
}

/* Addresses that collide under any multiplication without a key, or that differ in few bits: their
 * hashes are spread, and other ones with another key. */
static void test_is_keyed(void **state)
{
	enum { COUNT = 4096, PLACES = 1024, SPREAD = 800 };
	uint64_t inverse = HASH_GOLDEN;
	unsigned same = 0;

	(void)state;
	assert_true(hash_key[0]);
	for (int i = 0; i < 6; i++) /* modulo 2^64, by Newton */
		inverse *= 2 - HASH_GOLDEN * inverse;
	for (unsigned way = 0; way < 3; way++) {
		bool used[PLACES] = { false };
		unsigned count = 0;

		for (uint64_t i = 0; i < COUNT; i++) {
			uint64_t address = way == 0   ? (i << 52 | 42) * inverse
					   : way == 1 ? i << 35
						      : i << 3;
			uint64_t hash = hash_words(&address, sizeof(address), 0);

			count += !used[hash % PLACES];
			used[hash % PLACES] = true;
			hash_key[0]++;
			same += hash == hash_words(&address, sizeof(address), 0);
			hash_key[0]--;
		}
		assert_true(count > SPREAD);
	}
	assert_true(same < 10);
}

/* Of draft-eastlake-fnv-17. */
static void test_lasting(void **state)
{
	(void)state;
	assert_true(hash_lasting("", 0) == 0xcbf29ce484222325);
	assert_true(hash_lasting("a", 1) == 0xaf63dc4c8601ec8c);
	assert_true(hash_lasting("foobar", 6) == 0x85944171f73967e8);
}

struct item {
	uint64_t address;
	UT_hash_handle hh;
};

static void test_table(void **state)
{
	struct item *table = NULL, *item, *next;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		item = calloc(1, sizeof(*item));
		assert_non_null(item);
		item->address = i << 4;
		assert_non_null(HASH_KEEP(table, address, item));
	}
	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t address = i << 3;

		HASH_FIND(hh, table, &address, sizeof(address), item);
		assert_int_equal(item != NULL, i % 2 == 0);
	}
	HASH_ITER(hh, table, item, next)
	{
		HASH_DEL(table, item);
		free(item);
	}
}

static void test_intern(void **state)
{
	struct intern *intern = intern_create();
	uint32_t id;
	size_t len;

	(void)state;
	assert_non_null(intern);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(intern_put(intern, &i, sizeof(i), &id, NULL), 0);
		assert_int_equal(id, i);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(intern_find(intern, &i, sizeof(i), &id));
		assert_int_equal(id, i);
		assert_memory_equal(intern_get(intern, id, &len), &i, sizeof(i));
		assert_int_equal(len, sizeof(i));
	}
	assert_false(intern_find(intern, NULL, 0, &id));
	assert_int_equal(intern_count(intern), 1000);
	intern_destroy(intern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_differ), cmocka_unit_test(test_words_go_on),
		cmocka_unit_test(test_is_keyed),     cmocka_unit_test(test_lasting),
		cmocka_unit_test(test_table),	     cmocka_unit_test(test_intern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
