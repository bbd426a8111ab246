/* SPDX-License-Identifier: MIT */
/* Private to format: taking back what was put into a sink. */
#ifndef FORMAT_FILE_SINK_H
#define FORMAT_FILE_SINK_H

#include "format/writer.h"

/**
 * Undo of format_sink_put() for the record writers: an item that could not be put whole is taken
 * back, because half an item would make the rest of the stream unreadable.
 */

/** Bytes waiting for the next commit; a mark for format_sink_rewind(). */
size_t format_sink_pending(const struct format_sink *sink);

/** @return Bytes that the buffer for these has room for. */
size_t format_sink_capacity(const struct format_sink *sink);

/** Forget what was put after @p pending was taken. No commit may lie between. */
void format_sink_rewind(struct format_sink *sink, size_t pending);

#endif
