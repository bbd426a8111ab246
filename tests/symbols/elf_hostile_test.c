/* SPDX-License-Identifier: MIT */

/* Damaged ELF files give errors or other answers; run under the sanitizers they prove more. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hostile_elf.h"
#include "symbols/elf/elf_file.h"
#include "tests/rounds.h"

/** Bytes of the headers, of which every third is damaged, as of those of sections; of the rest
 * every STRIDE-th. */
#define HEADER_BYTES 1024
#define STRIDE	     61

static uint8_t original[HOSTILE_ELF_MAX_BYTES];
static size_t original_len;

static int read_original(void **state)
{
	int fd = open(FIXTURE_MINI, O_RDONLY);
	ssize_t len = read(fd, original, sizeof(original));

	(void)state;
	close(fd);
	original_len = len > 0 ? (size_t)len : 0;
	return len > 0 ? 0 : -1;
}

static void test_whole(void **state)
{
	(void)state;
	hostile_elf_exercise(original, original_len);
}

static void test_truncated(void **state)
{
	(void)state;
	for (size_t len = 0; len < original_len;
	     len += test_stride(len < HEADER_BYTES ? 7 : STRIDE * 2))
		hostile_elf_exercise(original, len);
}

static void damage(size_t at, uint8_t value)
{
	uint8_t before = original[at];

	original[at] = value;
	hostile_elf_exercise(original, original_len);
	original[at] = before;
}

static void test_damaged(void **state)
{
	size_t sections = original_len - original_len % 64 - 32 * 64;

	(void)state;
	for (size_t at = 0; at < original_len;
	     at += test_stride(at < HEADER_BYTES || at > sections ? 3 : STRIDE)) {
		damage(at, 0);
		damage(at, 0xff);
		damage(at, (uint8_t)(original[at] + 1));
	}
}

/* A note that claims to reach behind its section is no build-id. */
static void test_note_behind_its_end(void **state)
{
	const uint8_t note[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	uint8_t *at = memmem(original, original_len, note, sizeof(note));
	const uint8_t claims[] = { 20, 24 };

	(void)state;
	assert_non_null(at);
	for (size_t i = 0; i < sizeof(claims); i++) {
		struct symbols_source source;
		struct symbols_elf elf;
		struct failure why;
		uint8_t *copy = malloc(original_len);

		at[4] = claims[i];
		memcpy(copy, original, original_len);
		symbols_source_init_memory(&source, copy, original_len);
		assert_int_equal(0, symbols_elf_init(&elf, &source, &why));
		assert_int_equal(i == 0 ? claims[i] : 0, elf.build_id_len);
		symbols_elf_deinit(&elf);
	}
	at[4] = claims[0];
}

static void test_no_elf(void **state)
{
	static uint8_t bytes[4096];

	(void)state;
	hostile_elf_exercise(bytes, sizeof(bytes));
	memset(bytes, 0xff, sizeof(bytes));
	hostile_elf_exercise(bytes, sizeof(bytes));
	hostile_elf_exercise((const uint8_t *)"\177ELF", 4);
}

/* ---- DWARF ------------------------------------------------------------------------------ */

static uint8_t types[HOSTILE_ELF_MAX_BYTES];

/** Damage every ninth byte of the sections with DWARF, and of some others; at full length every
 * third.
 */
static void damage_types(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, types, sizeof(types));
	unsigned turn = 0;

	close(fd);
	assert_true(len > 0 && (size_t)len < sizeof(types));
	hostile_types_exercise(types, (size_t)len);
	/* They lie behind what is loaded. */
	for (size_t at = (size_t)len / 2; at < (size_t)len;
	     at += test_is_full() || test_is_emulated() ? test_stride(3) : 9) {
		uint8_t before = types[at];
		const uint8_t values[] = { 0, 0xff, (uint8_t)(before + 1), before ^ 0x20 };

		types[at] = values[turn++ % 4];
		hostile_types_exercise(types, (size_t)len);
		types[at] = before;
	}
}

static void test_damaged_types(void **state)
{
	static const char *const files[] = { TYPES_FIXTURES };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		damage_types(files[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_note_behind_its_end),
		cmocka_unit_test(test_no_elf),	cmocka_unit_test(test_damaged_types),
	};

	return cmocka_run_group_tests(tests, read_original, NULL);
}
