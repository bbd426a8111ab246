/* SPDX-License-Identifier: MIT */
/* Private to format: reading of streams. */
#ifndef FORMAT_STREAM_STREAM_READ_H
#define FORMAT_STREAM_STREAM_READ_H

#include "format/file/gzip_read.h"
#include "format/stream.h"

/** As format_read_stream(), from the current position of @p file, which is borrowed. */
int stream_read(struct unpack *file, const struct format_visitor *visitor, void *context,
		enum format_stream_kind *ret_kind, struct failure *why);

#endif
