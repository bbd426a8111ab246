/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an ELF file: an open file or a block of memory.
 *
 * Files are read with pread() and never mapped, because whoever owns the file may shorten it under
 * us. Every read is checked against the size at the time of the read.
 */
#ifndef SYMBOLS_ELF_ELF_BYTES_H
#define SYMBOLS_ELF_ELF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "attach/failure.h"

/** Longest symbol name that we read; longer ones (C++ templates) are cut. */
#define SYMBOLS_NAME_MAX_BYTES 512

struct symbols_source {
	int fd;		/**< -1 for memory. */
	uint8_t *bytes; /**< Memory, owned; NULL for a file. */
	uint64_t size;
	uint64_t device, inode; /**< Of a file, as fstat() tells. */
	struct timespec modified;
};

/** A source over @p fd, which it owns from now on, also on failure.
 *  @param why FAILURE_INVALID where it is not a regular file. */
int symbols_source_init_file(struct symbols_source *source, int fd, struct failure *why);

/** A source over @p bytes from malloc(), which it owns from now on. */
void symbols_source_init_memory(struct symbols_source *source, uint8_t *bytes, size_t size);
void symbols_source_deinit(struct symbols_source *source);

/** Whether the file still is what it was when it was opened. */
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
 * Copy the string at @p offset, which lies in a table that ends at @p end.
 * @return Its length, at most @p size - 1; 0 where there is none.
 */
size_t symbols_source_string(const struct symbols_source *source, uint64_t offset, uint64_t end,
			     char *ret_text, size_t size);

#endif
