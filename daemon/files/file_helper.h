/* SPDX-License-Identifier: MIT */
/* Private to daemon: the file helper, a process that gives files their names. */
#ifndef DAEMON_FILES_FILE_HELPER_H
#define DAEMON_FILES_FILE_HELPER_H

#include "attach/failure.h"
#include "daemon/files/output_files.h"

/*
 * The writer reads what a target has written, and so it has neither privileges nor folders. New
 * files, which a rotation and a replacement take, are made by a process of its own that reads
 * nothing but requests of one size. It makes files in the folders of the outputs alone, with names
 * that it makes itself of theirs and of a time, and removes none but what it has made.
 */
struct file_helper {
	pid_t pid;
	int fd;
};

/**
 * Start it. To be called before privileges are given up. It ends, and removes what has no name yet,
 * when the caller ends or stops it.
 * @param keep Files of a series that are kept at most, the newest ones; 0: all.
 */
int file_helper_start(const struct output_file *files, size_t count, bool is_series, unsigned keep,
		      struct file_helper *ret_helper, struct failure *why);
void file_helper_stop(struct file_helper *file_helper);

/**
 * Begin a file of an output. One of a stream in a series has its name at once, as it can be read at
 * any time; any other has one that ends in ".tmp".
 * @param time_s Since 1970; in the name, if there is a series.
 * @param ret_fd Open for reading and writing.
 */
int file_helper_begin(const struct file_helper *file_helper, size_t output, int64_t time_s,
		      int *ret_fd, struct failure *why);

/** What was begun last is whole: it gets its name. */
int file_helper_finish(const struct file_helper *file_helper, size_t output, struct failure *why);

#endif
