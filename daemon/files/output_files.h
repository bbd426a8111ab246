/* SPDX-License-Identifier: MIT */
/* Private to daemon: which files does a recording write, opened before privileges are given up? */
#ifndef DAEMON_FILES_OUTPUT_FILES_H
#define DAEMON_FILES_OUTPUT_FILES_H

#include <limits.h>

#include "daemon/record.h"

enum {
	/* Length of a series' addition to a name: "-20261122T235959_999". */
	OUTPUT_SERIES_MORE = 20,
};

/** One output. Streams, pipes and devices are written in place. Any other output has a folder in
 * which complete files get their names. */
struct output_file {
	const char *path; /* as given */
	const struct format_writer_ops *format;
	bool gzip;

	int fd;	      /* if written in place, else -1 */
	bool created; /* in place: did not exist before */
	/* in place: has contents, such as a profile, that are lost when it is emptied */
	bool has_old;
	bool can_empty; /* in place: a regular file that we may empty */

	int folder_fd;		 /* if not written in place, else -1 */
	char name[NAME_MAX + 1]; /* "": it has none */
	size_t stem_len;	 /* length of the name before a series' time */
	bool replaces;		 /* a file with that name exists, with this mode and owner: */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/**
 * Open an output without emptying an existing file.
 * @param is_series Many files with times in their names; no file has exactly this name.
 * @return 0, or -1 with errno.
 */
int output_open(const struct daemon_output *output, bool is_series, struct output_file *ret_file);

/** Close the descriptors of an output. */
void output_close(struct output_file *file);

/** Remove a file that was created but not used, or that is empty. */
void output_remove(const struct output_file *file, bool is_unused);

/**
 * Describe in a few words what is left of a failed output.
 * @param result The output's numbers so far.
 */
const char *output_describe_rest(const struct output_file *file, bool is_series,
				 const struct daemon_output_result *result);

#endif
