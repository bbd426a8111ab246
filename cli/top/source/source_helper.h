/* SPDX-License-Identifier: MIT */
/* Opens files for a caller that has given up its privileges: source files of watched processes, and
 * profiles in the folder in which it was started. */
#ifndef CLI_TOP_SOURCE_SOURCE_HELPER_H
#define CLI_TOP_SOURCE_SOURCE_HELPER_H

#include "cli/top/source/top_source.h"

/** A process of its own that opens regular files for reading, and makes new ones in its working
 * directory, and does nothing else. */
struct top_opener;

/** Start it, with the privileges of now. @param pids The processes whose files it opens; copied.
 *  @param count 0: those of any, as they are not known yet. @return NULL where it cannot be
 * started.
 */
struct top_opener *top_opener_create(const pid_t *pids, size_t count);

/** End it. */
void top_opener_destroy(struct top_opener *opener);

/**
 * Read a source file, top_source_open() and top_source_load(). Waits half a second at most: a file
 * system that does not answer holds up the opener, not the caller.
 */
int top_opener_read(struct top_opener *opener, pid_t pid, const char *chunk,
		    struct top_source *ret_source, const char **ret_why);

/**
 * Make a new file. One in the working directory is made with the opener's privileges: root without
 * its capabilities could not write to a folder of the user who has called it by sudo(8). Others are
 * made with the caller's.
 * @param ret_errnum Set on failure; EEXIST where there is such a file.
 * @return Its descriptor, for writing, or -1.
 */
int top_opener_create_file(struct top_opener *opener, const char *name, int *ret_errnum);

#endif
