/* SPDX-License-Identifier: MIT */
/* Who opens files for a caller that has given up its privileges: source files of sampled processes,
 * and profiles in the folder where it was started? */
#ifndef CLI_TOP_SOURCE_SOURCE_HELPER_H
#define CLI_TOP_SOURCE_SOURCE_HELPER_H

#include "cli/top/source/top_source.h"

/** A separate process that can only open regular files for reading, and create files in its working
 * directory. */
struct source_helper;

/**
 * Start the helper with the current privileges.
 * @param pids Processes whose files it opens; copied.
 * @param count 0: it opens files of any process, because they are not known yet.
 * @return NULL if it did not start.
 */
struct source_helper *source_helper_create(const pid_t *pids, size_t count);

/** End the helper. */
void source_helper_destroy(struct source_helper *helper);

/** Read a source file with top_source_open() and top_source_load(). Waits half a second at most: a
 * file system that does not respond blocks the helper, not the caller. */
int source_helper_read(struct source_helper *helper, pid_t pid, const char *chunk,
		       struct top_source *ret_source, const char **ret_why);

/**
 * Create a file. In the working directory the helper creates it with its privileges: root without
 * capabilities could not write to a folder of the user who called sudo(8). Elsewhere the caller
 * creates it with its own rights.
 * @param ret_errnum Set on failure; EEXIST if the file exists.
 * @return A descriptor for writing, or -1.
 */
int source_helper_create_file(struct source_helper *helper, const char *name, int *ret_errnum);

#endif
