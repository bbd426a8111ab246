/* SPDX-License-Identifier: MIT */
/* How are the members of a gzip file written? */
#include "format/file/gzip_write.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	MEMORY_LEVEL = 8,
	HEADER_BYTES = 10,
	HAS_EXTRA = 4,
	DEFLATE = 8,
	UNKNOWN_SYSTEM = 255,
	OUTPUT_BYTES = 65536,
};

static void put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *at, uint32_t value)
{
	put_u16(at, value);
	put_u16(at + 2, value >> 16);
}

static void put_header(uint8_t *at, uint8_t flags)
{
	memcpy(at, PACK_MAGIC, 2);
	at[2] = DEFLATE;
	at[3] = flags;
	memset(at + 4, 0, HEADER_BYTES - 5); /* no time, no compression hint */
	at[HEADER_BYTES - 1] = UNKNOWN_SYSTEM;
}

size_t pack_bound(size_t len)
{
	return compressBound(len) + PACK_STORED_MORE;
}

int pack_member(const void *bytes, size_t len, uint8_t *ret_bytes, size_t *ret_len,
		struct failure *why)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)bytes,
			    .avail_in = (uInt)len,
			    .next_out = ret_bytes,
			    .avail_out = (uInt)pack_bound(len) };
	int result;

	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, PACK_WINDOW_BITS, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compress the output");
	result = deflate(&stream, Z_FINISH);
	*ret_len = stream.total_out;
	deflateEnd(&stream);
	if (result != Z_STREAM_END)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "compress the output");
	return 0;
}

void pack_stored(const void *bytes, size_t len, uint8_t *ret_bytes)
{
	uint8_t *block = ret_bytes + HEADER_BYTES, *content = block + 5;

	put_header(ret_bytes, 0);
	block[0] = 1; /* the last block, stored */
	put_u16(block + 1, len);
	put_u16(block + 3, ~len);
	if (len)
		memcpy(content, bytes, len);
	put_u32(content + len, (uint32_t)crc32(0, content, (uInt)len));
	put_u32(content + len + 4, (uint32_t)len);
}

void pack_empty(size_t len, uint8_t *ret_bytes)
{
	size_t extra = len - PACK_EMPTY_MIN;
	uint8_t *block = ret_bytes + HEADER_BYTES + 2 + extra;

	put_header(ret_bytes, HAS_EXTRA);
	put_u16(ret_bytes + HEADER_BYTES, extra);
	memset(ret_bytes + HEADER_BYTES + 2, 0, extra);
	put_u16(block, 3); /* the last block, empty */
	memset(block + 2, 0, 8);
}

/* ---- Streams ---------------------------------------------------------------------------- */

struct pack_stream {
	FILE *file;
	z_stream stream;
	uint8_t output[OUTPUT_BYTES];
};

int pack_stream_create(FILE *file, struct pack_stream **ret_stream, struct failure *why)
{
	struct pack_stream *stream = calloc(1, sizeof(*stream));

	if (!stream || deflateInit2(&stream->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
				    PACK_WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compress the output");
	}
	stream->file = file;
	*ret_stream = stream;
	return 0;
}

void pack_stream_destroy(struct pack_stream *stream)
{
	if (stream)
		deflateEnd(&stream->stream);
	free(stream);
}

static int deflate_all(struct pack_stream *stream, int flush, struct failure *why)
{
	int result;

	do {
		stream->stream.next_out = stream->output;
		stream->stream.avail_out = OUTPUT_BYTES;
		result = deflate(&stream->stream, flush);
		if (result == Z_STREAM_ERROR)
			return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "compress the output");
		fwrite(stream->output, 1, OUTPUT_BYTES - stream->stream.avail_out, stream->file);
	} while (stream->stream.avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
	return 0;
}

int pack_stream_put(struct pack_stream *stream, const void *bytes, size_t len, struct failure *why)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		uInt part = len < UINT32_MAX ? (uInt)len : UINT32_MAX;

		stream->stream.next_in = (Bytef *)(uintptr_t)at;
		stream->stream.avail_in = part;
		if (deflate_all(stream, Z_NO_FLUSH, why))
			return -1;
		at += part;
		len -= part;
	}
	return 0;
}

int pack_stream_finish(struct pack_stream *stream, struct failure *why)
{
	stream->stream.avail_in = 0;
	return deflate_all(stream, Z_FINISH, why);
}
