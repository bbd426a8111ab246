/* SPDX-License-Identifier: MIT */

/* Memory that unwind entries take, of files with more than there is room for. */

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/space/space_internal.h"

#define FILES 6
/** A section of 16 MiB, the first of whose entries has nearly all of it, or which is a hole. */
#define SECTION_BYTES ((size_t)16 << 20)
#define FIRST_BYTES   ((uint32_t)15 << 20)

static char folder[] = "symbols_eh_frame_kept_test.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf ./%s", folder);
	return system(command);
}

/** Read the fixture, and find its section .eh_frame; without a table of its entries. */
static uint8_t *read_fixture(size_t *ret_len, Elf64_Shdr **ret_section)
{
	int fd = open(FIXTURE_STRIPPED, O_RDONLY);
	struct stat status;
	uint8_t *bytes;
	Elf64_Ehdr *head;
	Elf64_Phdr *programs;
	Elf64_Shdr *sections;

	assert_int_equal(fstat(fd, &status), 0);
	*ret_len = (size_t)status.st_size;
	bytes = malloc(*ret_len);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *ret_len), *ret_len);
	close(fd);
	head = (Elf64_Ehdr *)(void *)bytes;
	programs = (Elf64_Phdr *)(void *)(bytes + head->e_phoff);
	sections = (Elf64_Shdr *)(void *)(bytes + head->e_shoff);
	*ret_section = NULL;
	for (unsigned i = 0; i < head->e_phnum; i++)
		if (programs[i].p_type == PT_GNU_EH_FRAME)
			programs[i].p_type = PT_NULL;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		const char *name = (const char *)bytes + sections[head->e_shstrndx].sh_offset +
				   sections[i].sh_name;

		if (strcmp(name, ".eh_frame") == 0)
			*ret_section = &sections[i];
	}
	assert_non_null(*ret_section);
	return bytes;
}

/** A file like the fixture with such a section. */
static void make_file(unsigned number, uint32_t first_bytes, char path[64])
{
	Elf64_Shdr *section, before;
	size_t len;
	uint8_t *bytes = read_fixture(&len, &section);
	int fd;

	before = *section;
	section->sh_offset = (len + 4095) & ~(size_t)4095;
	section->sh_size = SECTION_BYTES;
	snprintf(path, 64, "%s/%u.so", folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, 0), len);
	if (first_bytes)
		assert_int_equal(pwrite(fd, &first_bytes, 4, (off_t)section->sh_offset), 4);
	assert_int_equal(pwrite(fd, bytes + before.sh_offset, before.sh_size,
				(off_t)(section->sh_offset + first_bytes +
					(first_bytes ? sizeof(first_bytes) : 0))),
			 before.sh_size);
	assert_int_equal(ftruncate(fd, (off_t)(section->sh_offset + SECTION_BYTES)), 0);
	close(fd);
	free(bytes);
}

/** A recorded space in which FILES such files are mapped, from their second page on. */
static struct symbols_space *map_files(uint32_t first_bytes)
{
	struct symbols_space *space;
	struct failure why;
	char text[FILES * 256];
	size_t len = 0;

	for (unsigned i = 0; i < FILES; i++) {
		struct stat status;
		char path[64], *whole;

		make_file(i, first_bytes, path);
		assert_int_equal(stat(path, &status), 0);
		whole = realpath(path, NULL);
		assert_non_null(whole);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%x-%x r-xp 00001000 %02x:%02x %lu %s\n", (i + 1) << 20,
					((i + 1) << 20) + 4096, major(status.st_dev),
					minor(status.st_dev), status.st_ino, whole);
		free(whole);
	}
	assert_int_equal(symbols_space_create_recorded(text, len, &space, &why), 0);
	return space;
}

static struct symbols_object *object_of(struct symbols_space *space, unsigned i)
{
	uint64_t bias;
	struct symbols_object *object =
		symbols_space_object_at(space, ((uint64_t)i + 1) << 20, &bias);

	assert_non_null(object);
	return object;
}

static size_t kept_bytes(const struct symbols_space *space)
{
	size_t kept = 0;

	for (const struct symbols_object *each = space->objects; each; each = each->hh.next)
		kept += symbols_object_eh_size(each);
	return kept;
}

/** All get their entries, but only those used last are kept. */
static void test_oldest_are_dropped(void **state)
{
	struct symbols_space *space = map_files(FIRST_BYTES);
	unsigned loaded = 0;

	(void)state;
	for (unsigned k = 0; k < 3 * FILES; k++) {
		struct symbols_object *object = object_of(space, k % FILES);
		uint64_t drops = space->eh_drops;
		const struct symbols_eh *eh = symbols_space_eh(space, object);

		assert_non_null(eh);
		assert_true(eh->len > FIRST_BYTES);
		assert_int_equal(eh->len + eh->count * sizeof(*eh->rows),
				 symbols_object_eh_size(object));
		assert_true(kept_bytes(space) <= SYMBOLS_EH_KEPT_BYTES);
		/* There is room for four. */
		assert_int_equal(space->eh_drops - drops, k >= 4);
		/* The one before is still there, whoever uses both in turn. */
		if (k)
			assert_true(symbols_object_eh_size(object_of(space, (k - 1) % FILES)) > 0);
	}
	for (unsigned i = 0; i < FILES; i++)
		loaded += symbols_object_eh_size(object_of(space, i)) > 0;
	assert_int_equal(loaded, 4);
	symbols_space_destroy(space);
}

/** What no entry lies in takes no memory, so nothing is dropped. */
static void test_holes(void **state)
{
	struct symbols_space *space = map_files(0);

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		const struct symbols_eh *eh = symbols_space_eh(space, object_of(space, i));
		struct symbols_eh_entry entry;

		assert_non_null(eh);
		assert_true(eh->len < 65536);
		for (size_t row = 0; row < eh->count; row++)
			assert_true(symbols_eh_entry_at(eh, row, &entry));
	}
	assert_int_equal(space->eh_drops, 0);
	assert_true(kept_bytes(space) < FILES * (size_t)65536);
	symbols_space_destroy(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_are_dropped),
		cmocka_unit_test(test_holes),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
