/* SPDX-License-Identifier: MIT */
/* How is one output written, with its format's writer and its file, and what if that fails? */
#include "daemon/writer/output.h"

#include <errno.h>
#include <unistd.h>

static bool has_folder(const struct output *output)
{
	return output->file->folder_fd >= 0;
}

static bool is_buffered(const struct output *output)
{
	return output->file->format->is_buffered;
}

static int fail(struct output *output, const struct failure *why)
{
	output->result.errnum = why->errnum			 ? why->errnum
				: why->kind == FAILURE_NO_MEMORY ? ENOMEM
								 : EIO;
	return -1;
}

/* ---- Start ------------------------------------------------------------------------------ */

/* Discard the old contents. */
static int empty(const struct output *output, struct failure *why)
{
	if (output->file->can_empty && ftruncate(output->file->fd, 0) != 0)
		return failure_set_errno(why, errno, 0, "empty the output");
	return 0;
}

static int open_new(const struct output *output, int *ret_fd, struct failure *why)
{
	int64_t time_s = (int64_t)(output->shared->options.time_ns / 1000000000u);

	return file_helper_begin(output->shared->file_helper, output->index, time_s, ret_fd, why);
}

/* Open the file that the sink writes to; -1: set when everything is written. */
static int open_sink(const struct output *output, int *ret_fd, struct failure *why)
{
	*ret_fd = -1;
	if (has_folder(output))
		return is_buffered(output) ? 0 : open_new(output, ret_fd, why);
	if (!is_buffered(output) && empty(output, why) != 0)
		return -1;
	*ret_fd = output->file->fd;
	return 0;
}

static int begin(struct output *output, struct failure *why)
{
	const struct format_writer_ops *format = output->file->format;
	struct format_options options = output->shared->options;
	int fd;

	options.gzip = output->file->gzip;
	if (open_sink(output, &fd, why) != 0)
		return -1;
	if ((fd >= 0 ? format_sink_create(fd, &output->sink, why)
		     : format_sink_create_idle(&output->sink, why)) != 0)
		return -1;
	if (options.gzip)
		format_sink_compress(output->sink);
	if (format->open(output->sink, output->shared->functions, &options, &output->self, why) !=
	    0)
		return -1;
	/* From now on a stream's file is a profile, even if an empty one. */
	return format->commit(output->self, false, why);
}

static int ensure_begun(struct output *output, struct failure *why)
{
	if (output->result.errnum)
		return failure_set_errno(why, output->result.errnum, 0, "write the output");
	if (output->self)
		return 0;
	return begin(output, why) == 0 ? 0 : fail(output, why);
}

int output_begin(struct output *output, struct failure *why)
{
	if (output->file->has_old || (has_folder(output) && !is_buffered(output)))
		return 0;
	return ensure_begun(output, why);
}

/* ---- Samples ---------------------------------------------------------------------------- */

int output_sample(struct output *output, const struct format_sample *sample, struct failure *why)
{
	if (ensure_begun(output, why) != 0)
		return -1;
	output->samples++;
	output->is_dirty = true;
	return output->file->format->sample(output->self, sample, why) == 0 ? 0 : fail(output, why);
}

int output_notes(struct output *output, const char *text, struct failure *why)
{
	const struct format_writer_ops *format = output->file->format;

	if (!output->self || !format->notes)
		return 0;
	return format->notes(output->self, text, why) == 0 ? 0 : fail(output, why);
}

int output_commit(struct output *output, struct failure *why)
{
	if (!output->self || !output->is_dirty || is_buffered(output))
		return 0;
	output->is_dirty = false;
	return output->file->format->commit(output->self, false, why) == 0 ? 0 : fail(output, why);
}

/* ---- Complete files --------------------------------------------------------------------- */

/* Write a new file under a temporary name, so that no final name leads to an incomplete profile. */
static int write_aside(struct output *output, struct failure *why)
{
	int fd;

	if (open_new(output, &fd, why) != 0)
		return -1;
	if (format_sink_aim(output->sink, fd, why) != 0) {
		close(fd);
		return -1;
	}
	if (output->file->format->commit(output->self, true, why) != 0)
		return -1;
	return file_helper_finish(output->shared->file_helper, output->index, why);
}

static int write_final(struct output *output, struct failure *why)
{
	if (is_buffered(output) && has_folder(output))
		return write_aside(output, why);
	if (is_buffered(output) && empty(output, why) != 0)
		return -1;
	return output->file->format->commit(output->self, true, why);
}

int output_snapshot(struct output *output, struct failure *why)
{
	if (!is_buffered(output))
		return output_commit(output, why);
	if (!has_folder(output) || !output->self || !output->is_dirty)
		return 0;
	output->is_dirty = false;
	if (write_aside(output, why) != 0)
		return fail(output, why);
	output->result.files = 1;
	return 0;
}

static void close_file(struct output *output)
{
	if (output->self)
		output->file->format->close(output->self);
	format_sink_destroy(output->sink);
	output->self = NULL;
	output->sink = NULL;
	output->samples = 0;
	output->is_dirty = false;
}

/* A file that already is a profile stays one. */
static int finish_nothing(struct output *output, struct failure *why)
{
	if (!output->self)
		return 0;
	if (is_buffered(output))
		close_file(output);
	else if (output->file->format->commit(output->self, true, why) != 0)
		return fail(output, why);
	return 0;
}

int output_finish(struct output *output, bool is_empty_too, struct failure *why)
{
	/* An output that failed earlier keeps what it has. */
	if (output->result.errnum)
		return -1;
	if (output->samples == 0 && !is_empty_too)
		return finish_nothing(output, why);
	if (ensure_begun(output, why) != 0)
		return -1;
	if (write_final(output, why) != 0)
		return fail(output, why);
	output->result.bytes += format_sink_bytes(output->sink);
	output->result.files = output->shared->is_series ? output->result.files + 1 : 1;
	close_file(output);
	return 0;
}

uint64_t output_bytes(const struct output *output)
{
	bool is_open = output->sink && !is_buffered(output);

	return output->result.bytes + (is_open ? format_sink_bytes(output->sink) : 0);
}

void output_deinit(struct output *output)
{
	/* Count what a failed stream has written. */
	output->result.bytes = output_bytes(output);
	close_file(output);
}
