/* SPDX-License-Identifier: MIT */
/* Passing over words: what is looked for is never passed, wherever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luastate/arch/arch.h"
#include "luastate/state/state.h"

enum { WORDS = 100, RANGE = 16 };

static const uint64_t least = 0x7f1200000060;

static void put(uint8_t *words, size_t index, uint64_t word)
{
	memcpy(words + 8 * index, &word, sizeof(word));
}

/* As state_arch_pass() is used: word by word where it does not go on. */
static size_t find(const uint8_t *words, size_t count, uint64_t first)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		i += state_arch_pass(words + 8 * i, count - i, first + 8 * i, RANGE);
		if (i == count)
			break;
		memcpy(&word, words + 8 * i, sizeof(word));
		if (word - (first + 8 * i) <= RANGE)
			return i;
	}
	return count;
}

static void test_each_location(void **state)
{
	static const int64_t inside[] = { 0, 1, RANGE - 1, RANGE };
	static const int64_t outside[] = { -1, RANGE + 1, INT64_MIN, INT64_MAX, 1 << 20 };
	uint8_t bytes[8 * WORDS + 8];

	(void)state;
	for (size_t shift = 0; shift < 8; shift++) {
		uint8_t *words = bytes + shift;

		memset(bytes, 0, sizeof(bytes));
		for (size_t at = 0; at < WORDS; at++) {
			uint64_t base = least + 8 * at;

			for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
				put(words, at, base + (uint64_t)inside[i]);
				assert_int_equal(at, find(words, WORDS, least));
			}
			for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
				put(words, at, base + (uint64_t)outside[i]);
				assert_int_equal(WORDS, find(words, WORDS, least));
			}
			put(words, at, 0);
		}
	}
}

/* Addresses of either half of the address space, and such that wrap around. */
static void test_each_base(void **state)
{
	static const uint64_t bases[] = {
		0, 8, INT64_MAX - 800, (uint64_t)INT64_MAX + 1, UINT64_MAX - 400, 0x7fffffffffff
	};
	uint8_t words[8 * WORDS];

	(void)state;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		for (size_t at = 0; at < WORDS; at++) {
			for (size_t k = 0; k < WORDS; k++)
				put(words, k, bases[i] + 8 * k - 1);
			assert_int_equal(WORDS, find(words, WORDS, bases[i]));
			put(words, at, bases[i] + 8 * at);
			assert_int_equal(at, find(words, WORDS, bases[i]));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_location),
		cmocka_unit_test(test_each_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
