/* SPDX-License-Identifier: MIT */
/* Private to daemon: how is one output written, in the writer process? */
#ifndef DAEMON_WRITER_OUTPUT_H
#define DAEMON_WRITER_OUTPUT_H

#include "daemon/files/file_helper.h"
#include "daemon/files/output_files.h"

/** What the outputs of a recording share. */
struct output_shared {
	const struct file_helper *file_helper; /* NULL if no output has a folder */
	const struct format_functions *functions;
	struct format_options options; /* of the current files, with their start time */
	bool is_series;
};

/** One output. It is not begun if only the first three members are set. */
struct output {
	const struct output_file *file;
	const struct output_shared *shared;
	size_t index;

	struct format_sink *sink;
	void *self; /* the format's state; NULL while not begun */
	bool is_dirty;
	uint64_t samples; /* in the current file */
	struct daemon_output_result result;
};

/** Begin a file if that loses nothing: an old file stays unchanged until the first sample, or until
 * the recording ends well without one. All these functions also note a failure in the result, and
 * then leave the output alone. */
int output_begin(struct output *output, struct failure *why);

int output_sample(struct output *output, const struct format_sample *sample, struct failure *why);

/** Add recording notes if there is a file and its format supports them. */
int output_notes(struct output *output, const char *text, struct failure *why);

/** Make the samples so far readable, if the format is a stream. */
int output_commit(struct output *output, struct failure *why);

/** Make the samples so far readable in any format: write a buffered format's file, and continue. */
int output_snapshot(struct output *output, struct failure *why);

/**
 * Complete the file. The next sample, or output_begin(), begins another one.
 * @param is_empty_too Also write a file without samples.
 */
int output_finish(struct output *output, bool is_empty_too, struct failure *why);

/** Bytes of all completed files and of the current one. */
uint64_t output_bytes(const struct output *output);

void output_deinit(struct output *output);

#endif
