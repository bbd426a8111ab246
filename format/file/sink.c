/* SPDX-License-Identifier: MIT */
/* How does a file stay complete after each commit? */
#include "format/file/sink.h"

#include "attach/array.h"
#include "format/file/gzip_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Most bytes that wait for a commit. A writer that ends, or a full disk, may lose them. */
#define PENDING_MAX (64u << 20)

/** A buffer of at most this size is kept between commits; most commits need less. After the
 * sampler stalls for seconds, one commit needs many times as much: a chain for all missed ticks. */
#define KEPT_MAX (256u << 10)

struct format_sink {
	int fd;
	bool in_order; /* Write only forward: a pipe, a device, or a file opened for appending. */
	off_t base;    /* Start of the profile in a regular file. */
	uint64_t data; /* Bytes in the file, without the trailer. */
	uint64_t committed;
	uint8_t *pending;
	size_t len, capacity;
	bool packs;
	bool is_broken; /* packs and in_order: a part of a member was written */
	size_t end_len; /* packs: bytes of the member with the trailer at the end of the file */
	uint8_t *packed;
	/* For a whole file. */
	struct pack_stream *pack;
	FILE *packed_file; /* the file below `pack` */
	int errnum;	   /* of a failed write */
};

int format_sink_create(int fd, struct format_sink **ret_sink, struct failure *why)
{
	struct format_sink *sink = NULL;

	if (format_sink_create_idle(&sink, why) != 0)
		return -1;
	if (format_sink_aim(sink, fd, why) != 0) {
		free(sink);
		return -1;
	}
	*ret_sink = sink;
	return 0;
}

int format_sink_create_idle(struct format_sink **ret_sink, struct failure *why)
{
	struct format_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "open the output");
	sink->fd = -1;
	*ret_sink = sink;
	return 0;
}

int format_sink_aim(struct format_sink *sink, int fd, struct failure *why)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat status;

	if (flags < 0 || fstat(fd, &status))
		return failure_set_errno(why, errno, 0, "open the output");
	if (sink->fd >= 0)
		close(sink->fd);
	sink->fd = fd;
	sink->base = 0;
	sink->data = sink->committed = 0;
	/* pwrite() ignores its offset on an O_APPEND descriptor (pwrite(2), BUGS). */
	sink->in_order = !S_ISREG(status.st_mode) || (flags & O_APPEND);
	if (!sink->in_order)
		sink->base = lseek(fd, 0, SEEK_CUR);
	if (sink->base < 0) {
		sink->base = 0;
		sink->in_order = true;
	}
	return 0;
}

void format_sink_destroy(struct format_sink *sink)
{
	if (!sink)
		return;
	if (sink->fd >= 0)
		close(sink->fd);
	free(sink->pending);
	free(sink->packed);
	free(sink);
}

void format_sink_compress(struct format_sink *sink)
{
	sink->packs = true;
}

uint64_t format_sink_bytes(const struct format_sink *sink)
{
	return sink->committed;
}

size_t format_sink_pending(const struct format_sink *sink)
{
	return sink->len;
}

size_t format_sink_capacity(const struct format_sink *sink)
{
	return sink->capacity;
}

void format_sink_rewind(struct format_sink *sink, size_t pending)
{
	if (pending < sink->len)
		sink->len = pending;
}

/** Ensure room for @p len more bytes. */
static int reserve(struct format_sink *sink, size_t len, struct failure *why)
{
	return ARRAY_RESERVE(sink->pending, sink->capacity, sink->len + len)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0,
				     "hold the output's next bytes");
}

int format_sink_put(struct format_sink *sink, const void *bytes, size_t len, struct failure *why)
{
	if (len == 0)
		return 0;
	if (len > PENDING_MAX || sink->len > PENDING_MAX - len)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "hold the output's next bytes");
	if (reserve(sink, len, why))
		return -1;
	memcpy(sink->pending + sink->len, bytes, len);
	sink->len += len;
	return 0;
}

/** Write all bytes at offset @p at, or at the current position if @p at is negative. */
static ssize_t write_all(int fd, const uint8_t *bytes, size_t len, off_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t count;

		if (at < 0)
			count = write(fd, bytes + done, len - done);
		else
			count = pwrite(fd, bytes + done, len - done, at + (off_t)done);
		if (count < 0 && errno == EINTR)
			continue;
		if (count == 0)
			errno = EIO;
		if (count <= 0)
			break;
		done += (size_t)count;
	}
	return (ssize_t)done;
}

/** A commit in place failed: remove its bytes, so that the file is as before. */
static int take_back(struct format_sink *sink, int errnum, struct failure *why)
{
	if (ftruncate(sink->fd, sink->base + (off_t)sink->committed)) {
		/* A failure is harmless: nobody reads bytes behind the old end mark. */
	}
	return failure_set(why, FAILURE_SYSTEM, errnum, 0, 0, "write the output");
}

/** Commit to a pipe or device. Written bytes cannot be taken back; the rest waits for the next
 * commit. */
static int commit_in_order(struct format_sink *sink, size_t trailer_len, bool final,
			   struct failure *why)
{
	size_t len = sink->len - (final ? 0 : trailer_len);
	ssize_t done = write_all(sink->fd, sink->pending, len, -1);

	if ((size_t)done < len) {
		int errnum = errno;

		sink->len -= trailer_len;
		if ((size_t)done > sink->len)
			done = (ssize_t)sink->len;
		memmove(sink->pending, sink->pending + done, sink->len - (size_t)done);
		sink->len -= (size_t)done;
		sink->committed += (uint64_t)done;
		return failure_set(why, FAILURE_SYSTEM, errnum, 0, 0, "write the output");
	}
	sink->committed += len;
	sink->len = 0;
	return 0;
}

/* The old trailer's first byte ends the profile for every reader, so the bytes behind it may be
 * half written. A write of one byte replaces it at the end; no crash can split that write. */
static int commit_in_place(struct format_sink *sink, size_t trailer_len, struct failure *why)
{
	off_t at = sink->base + (off_t)sink->data;
	bool first = sink->committed == 0 || trailer_len == 0;
	size_t rest = sink->len - (first ? 0 : 1);
	ssize_t done =
		write_all(sink->fd, sink->pending + (sink->len - rest), rest, at + (first ? 0 : 1));

	if ((size_t)done < rest ||
	    (!first && rest > 0 && write_all(sink->fd, sink->pending, 1, at) != 1)) {
		int errnum = errno;

		sink->len -= trailer_len;
		return take_back(sink, errnum, why);
	}
	sink->data += sink->len - trailer_len;
	sink->committed = sink->data + trailer_len;
	sink->len = 0;
	return 0;
}

/* ---- Compressed ------------------------------------------------------------------------- */

/** The trailer never spans two pages of the file, so one write replaces all of it. */
#define PAGE_BYTES 4096

/**
 * Pack the pending bytes and the trailer into `packed`.
 * @param trailer NULL: no trailer.
 * @param at Offset in the file where the bytes go; it keeps the trailer within one page.
 */
static int pack(struct format_sink *sink, const void *trailer, size_t trailer_len, uint64_t at,
		size_t *ret_len, struct failure *why)
{
	size_t len = 0, end_len = trailer_len + PACK_STORED_MORE, room;
	uint8_t *packed = realloc(sink->packed, pack_bound(sink->len) + PACK_EMPTY_MAX +
							PACK_EMPTY_MIN + end_len);

	if (!packed)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "compress the output");
	sink->packed = packed;
	if (sink->len > 0 && pack_member(sink->pending, sink->len, packed, &len, why))
		return -1;
	if (trailer) {
		room = PAGE_BYTES - (at + len) % PAGE_BYTES;
		if (room < end_len) {
			room += room < PACK_EMPTY_MIN ? PACK_EMPTY_MIN : 0;
			pack_empty(room, packed + len);
			len += room;
		}
		pack_stored(trailer, trailer_len, packed + len);
		len += end_len;
	}
	*ret_len = len;
	return 0;
}

/** Part of a member cannot be taken back, so no later byte may follow it. */
static int commit_packed_in_order(struct format_sink *sink, const void *trailer, size_t trailer_len,
				  bool final, struct failure *why)
{
	ssize_t done;
	size_t len;

	if (sink->is_broken)
		return failure_set(why, FAILURE_SYSTEM, EIO, 0, 0, "write the output");
	if (pack(sink, final ? trailer : NULL, trailer_len, 0, &len, why))
		return -1;
	done = write_all(sink->fd, sink->packed, len, -1);
	sink->committed += (uint64_t)done;
	sink->is_broken = (size_t)done < len;
	if (sink->is_broken)
		return failure_set(why, FAILURE_SYSTEM, errno, 0, 0, "write the output");
	sink->len = 0;
	return 0;
}

/* Write the new members behind the old trailer, which ends the profile for every reader. Then
 * replace the old trailer, in one write, with an empty member of the same size. */
static int commit_packed_in_place(struct format_sink *sink, const void *trailer, size_t trailer_len,
				  struct failure *why)
{
	uint64_t end = sink->data + sink->end_len;
	off_t at = sink->base + (off_t)sink->data;
	uint8_t nothing[PACK_EMPTY_MAX];
	size_t len;
	ssize_t done;

	if (sink->len == 0 && sink->committed > 0)
		return 0;
	if (pack(sink, trailer, trailer_len, (uint64_t)sink->base + end, &len, why))
		return -1;
	done = write_all(sink->fd, sink->packed, len, sink->base + (off_t)end);
	if ((size_t)done == len && sink->end_len > 0) {
		pack_empty(sink->end_len, nothing);
		if (write_all(sink->fd, nothing, sink->end_len, at) != (ssize_t)sink->end_len)
			done = 0;
	}
	if ((size_t)done < len)
		return take_back(sink, errno, why);
	sink->end_len = trailer_len + PACK_STORED_MORE;
	sink->data = end + len - sink->end_len;
	sink->committed = end + len;
	sink->len = 0;
	return 0;
}

static int commit_packed(struct format_sink *sink, const void *trailer, size_t len, bool final,
			 struct failure *why)
{
	if (sink->in_order)
		return commit_packed_in_order(sink, trailer, len, final, why);
	return commit_packed_in_place(sink, trailer, len, why);
}

/* ---- Commits ---------------------------------------------------------------------------- */

/* A stall made the buffer large, and stalls are rare. */
static void release_excess(struct format_sink *sink)
{
	if (sink->len > 0 || sink->capacity <= KEPT_MAX)
		return;
	free(sink->pending);
	free(sink->packed);
	sink->pending = sink->packed = NULL;
	sink->capacity = 0;
}

static int commit_plain(struct format_sink *sink, const void *trailer, size_t len, bool final,
			struct failure *why)
{
	if (reserve(sink, len, why))
		return -1;
	if (len > 0)
		memcpy(sink->pending + sink->len, trailer, len);
	sink->len += len;
	if (sink->in_order)
		return commit_in_order(sink, len, final, why);
	return commit_in_place(sink, len, why);
}

int format_sink_commit(struct format_sink *sink, const void *trailer, size_t len, bool final,
		       struct failure *why)
{
	int result = sink->packs ? commit_packed(sink, trailer, len, final, why)
				 : commit_plain(sink, trailer, len, final, why);

	release_excess(sink);
	return result;
}

/* ---- Whole files ------------------------------------------------------------------------ */

static ssize_t write_to_sink(void *cookie, const char *bytes, size_t len)
{
	struct format_sink *sink = cookie;
	ssize_t done = write_all(sink->fd, (const uint8_t *)bytes, len,
				 sink->in_order ? -1 : sink->base + (off_t)sink->committed);

	sink->committed += (uint64_t)done;
	if ((size_t)done == len)
		return done;
	sink->errnum = errno;
	return 0; /* reports an error: fopencookie(3) */
}

static ssize_t write_packed(void *cookie, const char *bytes, size_t len)
{
	struct format_sink *sink = cookie;
	struct failure why;

	if (pack_stream_put(sink->pack, bytes, len, &why) || ferror(sink->packed_file))
		return 0;
	return (ssize_t)len;
}

FILE *format_sink_file(struct format_sink *sink, struct failure *why)
{
	const cookie_io_functions_t plain = { .write = write_to_sink };
	const cookie_io_functions_t packing = { .write = write_packed };
	FILE *file = fopencookie(sink, "w", plain);

	sink->errnum = 0;
	if (file && sink->packs) {
		FILE *below = file;

		sink->packed_file = below;
		file = pack_stream_create(below, &sink->pack, why) == 0
			       ? fopencookie(sink, "w", packing)
			       : NULL;
		if (!file) {
			pack_stream_destroy(sink->pack);
			sink->pack = NULL;
			fclose(below);
		}
	}
	if (!file)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the output");
	return file;
}

int format_sink_file_done(struct format_sink *sink, FILE *file, struct failure *why)
{
	bool good = fclose(file) == 0;

	if (sink->pack) {
		good = good && pack_stream_finish(sink->pack, why) == 0;
		good = fclose(sink->packed_file) == 0 && good;
		pack_stream_destroy(sink->pack);
		sink->pack = NULL;
	}
	if (good && !sink->errnum)
		return 0;
	return failure_set(why, FAILURE_SYSTEM, sink->errnum ? sink->errnum : EIO, 0, 0,
			   "write the output");
}
