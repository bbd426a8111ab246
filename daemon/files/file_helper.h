/* SPDX-License-Identifier: MIT */
/* Private to daemon: which process gives the files their names? */
#ifndef DAEMON_FILES_FILE_HELPER_H
#define DAEMON_FILES_FILE_HELPER_H

#include "attach/failure.h"
#include "daemon/files/output_files.h"

/* The writer reads data that a target wrote, so it has neither privileges nor folders. The file
 * helper creates the new files for rotations and replacements. It reads only requests of one size.
 * It creates files only in the folders of the outputs, makes their names from the outputs' names
 * and a time, and removes only its own files. */
struct file_helper {
	pid_t pid;
	int fd;
};

/**
 * Start the file helper. Call this before privileges are given up. When the caller ends or stops
 * it, it removes unnamed files and ends.
 * @param keep How many files of a series to keep, newest first; 0: all.
 */
int file_helper_start(const struct output_file *files, size_t count, bool is_series, unsigned keep,
		      struct file_helper *ret_helper, struct failure *why);
void file_helper_stop(struct file_helper *file_helper);

/**
 * Begin a file of an output. A stream in a series has its final name at once, because it is
 * readable at any time. Other files have a name that ends in ".tmp".
 * @param time_s Seconds since 1970; part of the name in a series.
 * @param ret_fd Open for reading and writing.
 */
int file_helper_begin(const struct file_helper *file_helper, size_t output, int64_t time_s,
		      int *ret_fd, struct failure *why);

/** Give the complete last file its name. */
int file_helper_finish(const struct file_helper *file_helper, size_t output, struct failure *why);

#endif
