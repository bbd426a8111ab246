/* SPDX-License-Identifier: MIT */
/* Private to daemon: the files of a recording, opened before privileges are given up. */
#ifndef DAEMON_FILES_OUTPUT_FILES_H
#define DAEMON_FILES_OUTPUT_FILES_H

#include <limits.h>

#include "daemon/record.h"

enum {
	/* What a series puts into a name: "-20261122T235959_999". */
	OUTPUT_SERIES_MORE = 20,
};

/**
 * One of them. It is either written in place, as streams, pipes and devices are, or has a folder in
 * which its files appear under their names when they are whole.
 */
struct output_file {
	const char *path; /* as given */
	const struct format_writer_ops *format;
	bool gzip;

	int fd;	      /* written in place, else -1 */
	bool created; /* in place: did not exist before */
	bool has_old; /* in place: a profile, or whatever it is, that is lost when it is emptied */
	bool can_empty; /* in place: a regular file that is ours */

	int folder_fd;		 /* else -1 */
	char name[NAME_MAX + 1]; /* "": it has none */
	size_t stem_len;	 /* of the name: where a series has its time */
	bool replaces; /* there is a file of that name, and this is whose and how it is: */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/**
 * Open an output, without emptying what is there.
 * @param is_series Many files with the time in their names, none of this name.
 * @return 0, or -1 with errno.
 */
int output_open(const struct daemon_output *output, bool is_series, struct output_file *ret_file);

/** Close what is open of it. */
void output_close(struct output_file *file);

/** Remove a file that was made for nothing, or that nothing was written to. */
void output_remove(const struct output_file *file, bool is_unused);

/** What is left of an output that failed, in a few words. @param result As far as it is known. */
const char *output_describe_rest(const struct output_file *file, bool is_series,
				 const struct daemon_output_result *result);

#endif
