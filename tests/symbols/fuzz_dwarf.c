/* SPDX-License-Identifier: MIT */

/*
 * Files with DWARF of several versions, each changed as the input says: the first byte chooses a
 * file, and each following four bytes are a place and what is put there.
 */

#include "hostile_elf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *const paths[] = { TYPES_FIXTURES };
static uint8_t files[FILES_MAX][HOSTILE_ELF_MAX_BYTES];
static size_t lengths[FILES_MAX];

#define FILE_COUNT (sizeof(paths) / sizeof(paths[0]))

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		int fd = open(paths[i], O_RDONLY);
		ssize_t len = fd < 0 ? -1 : read(fd, files[i], HOSTILE_ELF_MAX_BYTES);

		if (len <= 0)
			abort();
		lengths[i] = (size_t)len;
		close(fd);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t changed[HOSTILE_ELF_MAX_BYTES];
	size_t file;

	if (size == 0)
		return 0;
	file = data[0] % FILE_COUNT;
	memcpy(changed, files[file], lengths[file]);
	for (size_t at = 1; at + 4 <= size; at += 4) {
		size_t location = data[at] | (size_t)data[at + 1] << 8;

		/* The second half holds the DWARF. */
		location = lengths[file] / 2 + location % (lengths[file] - lengths[file] / 2 - 1);
		memcpy(changed + location, data + at + 2, data[at + 3] & 0x80 ? 1 : 2);
	}
	hostile_types_exercise(changed, lengths[file]);
	return 0;
}
