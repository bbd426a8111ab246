/* SPDX-License-Identifier: MIT */
#include "tests/live/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	/* What is not committed is held in memory. */
	COMMIT_SAMPLES = 1000,
};

_Noreturn void stream_die(const char *step, const struct failure *why)
{
	char text[256];

	failure_describe(why, text, sizeof(text));
	fprintf(stderr, "%s: %s\n", step, text);
	exit(1);
}

void stream_open(struct stream *stream, const char *path, const struct format_functions *functions)
{
	static const struct format_options options;
	const struct format_writer_ops *format = format_writer_find("sysprof");
	struct failure why = { .step = "create the stream" };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	stream->samples = 0;
	if (fd < 0 || format_sink_create(fd, &stream->sink, &why) != 0 ||
	    format->open(stream->sink, functions, &options, &stream->writer, &why) != 0)
		stream_die(path, &why);
}

void stream_put(struct stream *stream, const struct format_sample *sample)
{
	struct failure why;

	const struct format_writer_ops *format = format_writer_find("sysprof");

	if (format->sample(stream->writer, sample, &why) != 0 ||
	    (++stream->samples % COMMIT_SAMPLES == 0 &&
	     format->commit(stream->writer, false, &why) != 0))
		stream_die("write a sample", &why);
}

void stream_close(struct stream *stream)
{
	const struct format_writer_ops *format = format_writer_find("sysprof");
	struct failure why;

	if (format->commit(stream->writer, true, &why) != 0)
		stream_die("finish the stream", &why);
	format->close(stream->writer);
	format_sink_destroy(stream->sink);
}
