/* SPDX-License-Identifier: MIT */
/* How is a file read that gzip may have compressed? */
#include "format/file/gzip_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "format/file/gzip_write.h"

enum { INPUT_BYTES = 65536 };

struct unpack {
	FILE *file;
	void (*progress)(void *context, size_t bytes); /* NULL: no callback */
	void *progress_context;
	bool is_open, is_packed, is_broken;
	bool is_inside;	 /* the read position is inside a member */
	uint64_t offset; /* of the next unpacked byte, in the content */
	uint8_t back[UNPACK_BACK_MAX];
	size_t back_at, back_len; /* bytes that were put back and not read again */
	z_stream stream;	  /* its input: bytes read from the file and not consumed */
	uint8_t input[INPUT_BYTES];
};

int unpack_create(FILE *file, struct unpack **ret_unpack, struct failure *why)
{
	struct unpack *unpack = calloc(1, sizeof(*unpack));

	if (!unpack)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read the file");
	unpack->file = file;
	*ret_unpack = unpack;
	return 0;
}

void unpack_destroy(struct unpack *unpack)
{
	if (unpack && unpack->is_packed)
		inflateEnd(&unpack->stream);
	free(unpack);
}

void unpack_set_progress(struct unpack *unpack, void (*progress)(void *context, size_t bytes),
			 void *context)
{
	unpack->progress = progress;
	unpack->progress_context = context;
}

static int refill(struct unpack *unpack, struct failure *why)
{
	size_t len;

	errno = 0;
	len = fread(unpack->input, 1, INPUT_BYTES, unpack->file);
	if (len == 0 && ferror(unpack->file))
		return failure_set_errno(why, errno ? errno : EIO, 0, "read the file");
	unpack->stream.next_in = unpack->input;
	unpack->stream.avail_in = (uInt)len;
	if (unpack->progress)
		unpack->progress(unpack->progress_context, len);
	return 0;
}

static int begin(struct unpack *unpack, struct failure *why)
{
	if (refill(unpack, why))
		return -1;
	unpack->is_open = true;
	if (unpack->stream.avail_in < 2 || memcmp(unpack->input, PACK_MAGIC, 2) != 0)
		return 0;
	if (inflateInit2(&unpack->stream, PACK_WINDOW_BITS) != Z_OK)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read the file");
	unpack->is_packed = true;
	return 0;
}

static size_t take_plain(struct unpack *unpack, uint8_t *ret_bytes, size_t size)
{
	z_stream *stream = &unpack->stream;
	size_t len = stream->avail_in < size ? stream->avail_in : size;

	if (len)
		memcpy(ret_bytes, stream->next_in, len);
	stream->next_in += len;
	stream->avail_in -= (uInt)len;
	return len;
}

/* One step: it ends with some output, at the end of a member, or with all input consumed. */
static void inflate_some(struct unpack *unpack)
{
	uInt room = unpack->stream.avail_out;
	int result = inflate(&unpack->stream, Z_NO_FLUSH);

	unpack->offset += room - unpack->stream.avail_out;
	unpack->is_inside = result != Z_STREAM_END;
	if (result == Z_STREAM_END)
		result = inflateReset(&unpack->stream);
	unpack->is_broken = result != Z_OK && result != Z_BUF_ERROR;
}

static int tell_damage(const struct unpack *unpack, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, unpack->offset,
			   "damaged or truncated gzip data");
}

void unpack_put_back(struct unpack *unpack, const uint8_t *bytes, size_t len)
{
	if (len)
		memcpy(unpack->back, bytes, len);
	unpack->back_at = 0;
	unpack->back_len = len;
}

static size_t take_back(struct unpack *unpack, uint8_t *ret_bytes, size_t size)
{
	size_t rest = unpack->back_len - unpack->back_at, len = rest < size ? rest : size;

	memcpy(ret_bytes, unpack->back + unpack->back_at, len);
	unpack->back_at += len;
	return len;
}

int unpack_read(struct unpack *unpack, uint8_t *ret_bytes, size_t size, size_t *ret_len,
		struct failure *why)
{
	z_stream *stream = &unpack->stream;

	*ret_len = take_back(unpack, ret_bytes, size);
	if (*ret_len)
		return 0;
	if (!unpack->is_open && begin(unpack, why))
		return -1;
	stream->next_out = ret_bytes;
	stream->avail_out = (uInt)size;
	while (!unpack->is_broken && stream->avail_out == size) {
		if (stream->avail_in == 0 && refill(unpack, why))
			return -1;
		if (stream->avail_in == 0)
			return 0;
		if (!unpack->is_packed) {
			*ret_len = take_plain(unpack, ret_bytes, size);
			return 0;
		}
		inflate_some(unpack);
	}
	*ret_len = size - stream->avail_out;
	/* Deliver the content before the damage first; the next call reports the damage. */
	return *ret_len ? 0 : tell_damage(unpack, why);
}

int unpack_finish(struct unpack *unpack, struct failure *why)
{
	z_stream *stream = &unpack->stream;
	uint8_t rest[1024];

	/* Stop at the end of this member; the next one may be half written. */
	while (unpack->is_inside && !unpack->is_broken) {
		if (stream->avail_in == 0 && refill(unpack, why))
			return -1;
		if (stream->avail_in == 0)
			break;
		stream->next_out = rest;
		stream->avail_out = sizeof(rest);
		inflate_some(unpack);
	}
	return unpack->is_inside ? tell_damage(unpack, why) : 0;
}
