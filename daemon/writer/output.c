/* SPDX-License-Identifier: MIT */
/* One output: its format's writer, its file, and what to do where that fails. */
#include "daemon/writer/output.h"

#include <errno.h>
#include <unistd.h>

static bool has_folder(const struct written *written)
{
	return written->file->folder_fd >= 0;
}

static bool is_whole(const struct written *written)
{
	return written->file->format->is_whole;
}

static int fail(struct written *written, const struct failure *why)
{
	written->result.errnum = why->errnum			  ? why->errnum
				 : why->kind == FAILURE_NO_MEMORY ? ENOMEM
								  : EIO;
	return -1;
}

/* ---- Begin ------------------------------------------------------------------------------ */

/* What was there goes now. */
static int empty(const struct written *written, struct failure *why)
{
	if (written->file->can_empty && ftruncate(written->file->fd, 0) != 0)
		return failure_set_errno(why, errno, 0, "empty the output");
	return 0;
}

static int open_new(const struct written *written, int *ret_fd, struct failure *why)
{
	int64_t time_s = (int64_t)(written->shared->options.time_ns / 1000000000u);

	return placer_begin(written->shared->placer, written->index, time_s, ret_fd, why);
}

/* Where the sink writes to; -1: set when all is written. */
static int open_sink(const struct written *written, int *ret_fd, struct failure *why)
{
	*ret_fd = -1;
	if (has_folder(written))
		return is_whole(written) ? 0 : open_new(written, ret_fd, why);
	if (!is_whole(written) && empty(written, why) != 0)
		return -1;
	*ret_fd = written->file->fd;
	return 0;
}

static int begin(struct written *written, struct failure *why)
{
	const struct format_writer_ops *format = written->file->format;
	struct format_options options = written->shared->options;
	int fd;

	options.gzip = written->file->gzip;
	if (open_sink(written, &fd, why) != 0)
		return -1;
	if ((fd >= 0 ? format_sink_create(fd, &written->sink, why)
		     : format_sink_create_idle(&written->sink, why)) != 0)
		return -1;
	if (options.gzip)
		format_sink_compress(written->sink);
	if (format->open(written->sink, written->shared->functions, &options, &written->self,
			 why) != 0)
		return -1;
	/* From here on a stream's file is a profile, if an empty one. */
	return format->commit(written->self, false, why);
}

static int ensure_begun(struct written *written, struct failure *why)
{
	if (written->result.errnum)
		return failure_set_errno(why, written->result.errnum, 0, "write the output");
	if (written->self)
		return 0;
	return begin(written, why) == 0 ? 0 : fail(written, why);
}

int written_begin(struct written *written, struct failure *why)
{
	if (written->file->has_old || (has_folder(written) && !is_whole(written)))
		return 0;
	return ensure_begun(written, why);
}

/* ---- Samples ---------------------------------------------------------------------------- */

int written_sample(struct written *written, const struct format_sample *sample, struct failure *why)
{
	if (ensure_begun(written, why) != 0)
		return -1;
	written->samples++;
	written->is_dirty = true;
	return written->file->format->sample(written->self, sample, why) == 0 ? 0
									      : fail(written, why);
}

int written_account(struct written *written, const char *text, struct failure *why)
{
	const struct format_writer_ops *format = written->file->format;

	if (!written->self || !format->account)
		return 0;
	return format->account(written->self, text, why) == 0 ? 0 : fail(written, why);
}

int written_commit(struct written *written, struct failure *why)
{
	if (!written->self || !written->is_dirty || is_whole(written))
		return 0;
	written->is_dirty = false;
	return written->file->format->commit(written->self, false, why) == 0 ? 0
									     : fail(written, why);
}

/* ---- Whole files ------------------------------------------------------------------------ */

/* A file under a name of its own, so that no name ever leads to a part of a profile. */
static int write_aside(struct written *written, struct failure *why)
{
	int fd;

	if (open_new(written, &fd, why) != 0)
		return -1;
	if (format_sink_aim(written->sink, fd, why) != 0) {
		close(fd);
		return -1;
	}
	if (written->file->format->commit(written->self, true, why) != 0)
		return -1;
	return placer_finish(written->shared->placer, written->index, why);
}

static int write_final(struct written *written, struct failure *why)
{
	if (is_whole(written) && has_folder(written))
		return write_aside(written, why);
	if (is_whole(written) && empty(written, why) != 0)
		return -1;
	return written->file->format->commit(written->self, true, why);
}

int written_snapshot(struct written *written, struct failure *why)
{
	if (!is_whole(written))
		return written_commit(written, why);
	if (!has_folder(written) || !written->self || !written->is_dirty)
		return 0;
	written->is_dirty = false;
	if (write_aside(written, why) != 0)
		return fail(written, why);
	written->result.files = 1;
	return 0;
}

static void close_file(struct written *written)
{
	if (written->self)
		written->file->format->close(written->self);
	format_sink_destroy(written->sink);
	written->self = NULL;
	written->sink = NULL;
	written->samples = 0;
	written->is_dirty = false;
}

/* One that is a profile already stays one. */
static int finish_nothing(struct written *written, struct failure *why)
{
	if (!written->self)
		return 0;
	if (is_whole(written))
		close_file(written);
	else if (written->file->format->commit(written->self, true, why) != 0)
		return fail(written, why);
	return 0;
}

int written_finish(struct written *written, bool is_empty_too, struct failure *why)
{
	/* What failed in the middle ends with what it had at last. */
	if (written->result.errnum)
		return -1;
	if (written->samples == 0 && !is_empty_too)
		return finish_nothing(written, why);
	if (ensure_begun(written, why) != 0)
		return -1;
	if (write_final(written, why) != 0)
		return fail(written, why);
	written->result.bytes += format_sink_bytes(written->sink);
	written->result.files = written->shared->is_series ? written->result.files + 1 : 1;
	close_file(written);
	return 0;
}

uint64_t written_bytes(const struct written *written)
{
	bool is_open = written->sink && !is_whole(written);

	return written->result.bytes + (is_open ? format_sink_bytes(written->sink) : 0);
}

void written_deinit(struct written *written)
{
	/* What a failed stream has on file counts. */
	written->result.bytes = written_bytes(written);
	close_file(written);
}
