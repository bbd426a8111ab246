/* SPDX-License-Identifier: MIT */
/* A file of any content as the reader of profiles takes it, compressed or not; and what is
 * compressed comes back as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/file/gzip_read.h"
#include "format/file/gzip_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

enum {
	PIECE_BYTES = 1000,
	/* Deflate's bound, with room for what a window holds. */
	RATIO_MAX = 1033,
	MORE_MAX = 65536,
};

/* @return how much there was; it is compared with what was asked for, if anything was. */
static size_t unpack_all(const uint8_t *bytes, size_t size, const uint8_t *content, size_t len)
{
	FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "rb");
	uint8_t piece[PIECE_BYTES];
	struct unpack *unpack;
	struct failure why;
	size_t all = 0, got;

	MUST(file && unpack_create(file, &unpack, &why) == 0);
	while (unpack_read(unpack, piece, 1 + all % PIECE_BYTES, &got, &why) == 0 && got) {
		MUST(!content || (got <= len - all && memcmp(piece, content + all, got) == 0));
		all += got;
	}
	unpack_destroy(unpack);
	fclose(file);
	return all;
}

static void there_and_back(const uint8_t *data, size_t size)
{
	size_t empty = PACK_EMPTY_MIN + size % (PACK_EMPTY_MAX - PACK_EMPTY_MIN + 1), len;
	size_t stored = size < 65536 ? size : 65535;
	uint8_t *packed = malloc(pack_bound(size) + empty + stored + PACK_STORED_MORE);
	struct failure why;

	MUST(packed && pack_member(data, size, packed, &len, &why) == 0 && len <= pack_bound(size));
	MUST(unpack_all(packed, len, data, size) == size);
	pack_empty(empty, packed + len);
	MUST(unpack_all(packed, len + empty, data, size) == size);
	pack_stored(data, stored, packed + len + empty);
	MUST(unpack_all(packed, len + empty + stored + PACK_STORED_MORE, NULL, 0) == size + stored);
	free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	MUST(unpack_all(data, size, NULL, 0) <= size * RATIO_MAX + MORE_MAX);
	there_and_back(data, size);
	return 0;
}
