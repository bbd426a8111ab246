/* SPDX-License-Identifier: MIT */
/* Private to daemon: an output while it is written, in the writer process. */
#ifndef DAEMON_WRITER_OUTPUT_H
#define DAEMON_WRITER_OUTPUT_H

#include "daemon/files/file_helper.h"
#include "daemon/files/output_files.h"

/** What the outputs of a recording have in common. */
struct written_shared {
	const struct placer *placer; /* NULL where no output has a folder */
	const struct format_functions *functions;
	struct format_options options; /* of the files that are written now; with their begin */
	bool is_series;
};

/** One of them. All zero but the first three it is not begun. */
struct written {
	const struct output_file *file;
	const struct written_shared *shared;
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
int written_begin(struct written *written, struct failure *why);

int written_sample(struct written *written, const struct format_sample *sample,
		   struct failure *why);

/** Say how the recording went, in lines, where there is a file and its format has a place for that.
 */
int written_account(struct written *written, const char *text, struct failure *why);

/** Make what is there readable, if it is a stream. */
int written_commit(struct written *written, struct failure *why);

/** The same for all that have a file: one that is written as a whole is, and goes on. */
int written_snapshot(struct written *written, struct failure *why);

/** Complete the file. @param is_empty_too Also one without a sample; else none is made of nothing.
 *  The next sample, or written_begin(), begins another one. */
int written_finish(struct written *written, bool is_empty_too, struct failure *why);

/** Bytes in files: all that were completed, and what is in the one that is written. */
uint64_t written_bytes(const struct written *written);

void written_deinit(struct written *written);

#endif
