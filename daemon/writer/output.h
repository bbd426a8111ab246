/* SPDX-License-Identifier: MIT */
/* Private to daemon: an output while it is written, in the writer process. */
#ifndef DAEMON_WRITER_OUTPUT_H
#define DAEMON_WRITER_OUTPUT_H

#include "daemon/files/file_helper.h"
#include "daemon/files/output_files.h"

/** What the outputs of a recording have in common. */
struct output_shared {
	const struct file_helper *file_helper; /* NULL where no output has a folder */
	const struct format_functions *functions;
	struct format_options options; /* of the files that are written now; with their begin */
	bool is_series;
};

/** One of them. All zero but the first three it is not begun. */
struct output {
	const struct output_file *file;
	const struct output_shared *shared;
	size_t index;

	struct format_sink *sink;
	void *self; /* the format's; NULL while not begun */
	bool is_dirty;
	uint64_t samples; /* in the file that is written now */
	struct daemon_output_result result;
};

/**
 * Begin a file, where that loses nothing: what is there already stays as it was until the first
 * sample comes, or the recording ends well without one. Failures of all these functions are in the
 * result, too, and the output is left alone from then on.
 */
int output_begin(struct output *output, struct failure *why);

int output_sample(struct output *output, const struct format_sample *sample, struct failure *why);

/** Say how the recording went, in lines, where there is a file and its format has a place for that.
 */
int output_notes(struct output *output, const char *text, struct failure *why);

/** Make what is there readable, if it is a stream. */
int output_commit(struct output *output, struct failure *why);

/** The same for all that have a file: one that is written as a whole is, and goes on. */
int output_snapshot(struct output *output, struct failure *why);

/** Complete the file. @param is_empty_too Also one without a sample; else none is made of nothing.
 *  The next sample, or output_begin(), begins another one. */
int output_finish(struct output *output, bool is_empty_too, struct failure *why);

/** Bytes in files: all that were completed, and what is in the one that is written. */
uint64_t output_bytes(const struct output *output);

void output_deinit(struct output *output);

#endif
