/* SPDX-License-Identifier: MIT */
/* Which members make up a gzip file? */
#ifndef FORMAT_FILE_GZIP_WRITE_H
#define FORMAT_FILE_GZIP_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/failure.h"

/**
 * The first two bytes of each member. A gzip file is a sequence of members, each complete by
 * itself.
 * Source: RFC 1952 (the format), RFC 1951 (stored and empty blocks).
 */
#define PACK_MAGIC "\x1f\x8b"

/** zlib's window, plus 16 for a gzip wrapper: zlib.h, deflateInit2(). */
enum { PACK_WINDOW_BITS = 15 + 16 };

/** Bytes that a stored member adds to its content, which must be shorter than 64 KiB; smallest
 * and largest size of an empty member. */
enum { PACK_STORED_MORE = 23, PACK_EMPTY_MIN = 22, PACK_EMPTY_MAX = 4096 };

/**
 * Compress a member.
 * @param len Less than 4 GiB.
 * @param ret_bytes Has room for pack_bound(len) bytes.
 * @return 0 with *ret_len set, or -1 with FAILURE_NO_MEMORY.
 */
int pack_member(const void *bytes, size_t len, uint8_t *ret_bytes, size_t *ret_len,
		struct failure *why);

/** @return The most bytes that a member with @p len bytes of content needs. */
size_t pack_bound(size_t len);

/** Write a member of @p len + PACK_STORED_MORE bytes, independent of the content. */
void pack_stored(const void *bytes, size_t len, uint8_t *ret_bytes);

/** Write a member of exactly @p len bytes without content, PACK_EMPTY_MIN to PACK_EMPTY_MAX. */
void pack_empty(size_t len, uint8_t *ret_bytes);

/** One member of any length, written to a file. */
struct pack_stream;

/** @param file Borrowed; the caller checks ferror(). */
int pack_stream_create(FILE *file, struct pack_stream **ret_stream, struct failure *why);
void pack_stream_destroy(struct pack_stream *stream);
int pack_stream_put(struct pack_stream *stream, const void *bytes, size_t len, struct failure *why);
/** End the member. */
int pack_stream_finish(struct pack_stream *stream, struct failure *why);

#endif
