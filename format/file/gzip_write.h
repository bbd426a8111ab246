/* SPDX-License-Identifier: MIT */
/*
 * Parts of a gzip file, which is a sequence of members that are whole each. Source: RFC 1952 (the
 * format), RFC 1951 (blocks that are stored, and the empty block).
 */
#ifndef FORMAT_FILE_GZIP_WRITE_H
#define FORMAT_FILE_GZIP_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/failure.h"

/** What every member begins with. */
#define PACK_MAGIC "\x1f\x8b"

/** zlib's window, as gzip's wrapper wants it: zlib.h, deflateInit2(). */
enum { PACK_WINDOW_BITS = 15 + 16 };

/** Bytes that a stored member has besides its content, which is shorter than 64 KiB; the least that
 *  an empty one takes; a bound for either. */
enum { PACK_STORED_MORE = 23, PACK_EMPTY_MIN = 22, PACK_EMPTY_MAX = 4096 };

/** Compress into @p ret_bytes of pack_bound() bytes. @param len Less than 4 GiB. @return 0 and the
 * length, or -1 with FAILURE_NO_MEMORY. */
int pack_member(const void *bytes, size_t len, uint8_t *ret_bytes, size_t *ret_len,
		struct failure *why);

/** The most bytes that a member of @p len bytes of content takes. */
size_t pack_bound(size_t len);

/** A member of @p len + PACK_STORED_MORE bytes, whatever the content. */
void pack_stored(const void *bytes, size_t len, uint8_t *ret_bytes);

/** A member of @p len bytes with nothing in it, PACK_EMPTY_MIN to PACK_EMPTY_MAX. */
void pack_empty(size_t len, uint8_t *ret_bytes);

/** One member of any length, to a file. */
struct pack_stream;

/** @param file Borrowed. Its errors are left to the caller's ferror(). */
int pack_stream_create(FILE *file, struct pack_stream **ret_stream, struct failure *why);
void pack_stream_destroy(struct pack_stream *stream);
int pack_stream_put(struct pack_stream *stream, const void *bytes, size_t len, struct failure *why);
/** The member ends. */
int pack_stream_finish(struct pack_stream *stream, struct failure *why);

#endif
