/* SPDX-License-Identifier: MIT */
/*
 * How do we read the bytes of an ELF file, from an open file or a memory block?
 *
 * We read files with pread() and never map them, because their owner may shorten them while we
 * read. We check every read against the size at that time.
 */
#ifndef SYMBOLS_ELF_ELF_BYTES_H
#define SYMBOLS_ELF_ELF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "attach/failure.h"

/** Longest symbol name that we read; we truncate longer ones (C++ templates). */
#define SYMBOLS_NAME_MAX_BYTES 512

struct symbols_source {
	int fd;		/**< -1 for memory. */
	uint8_t *bytes; /**< Memory, owned; NULL for a file. */
	uint64_t size;
	uint64_t device, inode; /**< Of a file, from fstat(). */
	struct timespec modified;
};

/**
 * Open a source for @p fd. The source owns @p fd from now on, also on failure.
 * @param why FAILURE_INVALID if it is not a regular file.
 */
int symbols_source_init_file(struct symbols_source *source, int fd, struct failure *why);

/** Open a source for @p bytes from malloc(). The source owns them from now on. */
void symbols_source_init_memory(struct symbols_source *source, uint8_t *bytes, size_t size);
void symbols_source_deinit(struct symbols_source *source);

/** Whether the file is unchanged since it was opened. */
bool symbols_source_unchanged(const struct symbols_source *source);

/** Copy exactly @p len bytes at @p offset. */
bool symbols_source_read(const struct symbols_source *source, uint64_t offset, void *ret_bytes,
			 size_t len);

/**
 * Copy [offset, offset+len) into new memory of at most @p max bytes.
 * @return Owned by the caller, or NULL.
 */
uint8_t *symbols_source_copy(const struct symbols_source *source, uint64_t offset, uint64_t len,
			     size_t max);

/**
 * Copy the string at @p offset in a table that ends at @p end.
 * @return Its length, at most @p size - 1; 0: no string.
 */
size_t symbols_source_string(const struct symbols_source *source, uint64_t offset, uint64_t end,
			     char *ret_text, size_t size);

#endif
