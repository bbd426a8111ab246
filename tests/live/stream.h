/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIVE_STREAM_H
#define TESTS_LIVE_STREAM_H

#include "format/writer.h"

/** A sysprof stream in a file, written in this process. */
struct stream {
	struct format_sink *sink;
	void *writer;
	unsigned long samples;
};

/** Create @p path. Ends the program on failure. */
void stream_open(struct stream *stream, const char *path, const struct format_functions *functions);
void stream_put(struct stream *stream, const struct format_sample *sample);
void stream_close(struct stream *stream);

/** Print "PROGRAM: STEP: failure" and exit. */
_Noreturn void stream_die(const char *step, const struct failure *why);

#endif
