/* SPDX-License-Identifier: MIT */
/* Private to format: how is a partly written item removed from a sink? */
#ifndef FORMAT_FILE_SINK_H
#define FORMAT_FILE_SINK_H

#include "format/writer.h"

/** Record writers use these functions to undo format_sink_put(): if an item does not fit whole,
 * they remove its first part, because half an item makes the rest of the stream unreadable. */

/** @return Bytes that wait for the next commit; pass it to format_sink_rewind(). */
size_t format_sink_pending(const struct format_sink *sink);

/** @return Bytes that the buffer has room for. */
size_t format_sink_capacity(const struct format_sink *sink);

/** Drop all bytes put after format_sink_pending() returned @p pending. No commit may be in
 * between. */
void format_sink_rewind(struct format_sink *sink, size_t pending);

#endif
