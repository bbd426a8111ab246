/* SPDX-License-Identifier: MIT */
/* Opens source files of watched processes for a caller that has given up its privileges. */
#ifndef CLI_TOP_OPENER_H
#define CLI_TOP_OPENER_H

#include "cli/top_source.h"

/** A process of its own that does nothing but open regular files for reading. */
struct top_opener;

/** Start it, with the privileges of now. @return NULL where it cannot be started. */
struct top_opener *top_opener_create(void);

/** End it. */
void top_opener_destroy(struct top_opener *opener);

/**
 * Read a source file, top_source_open() and top_source_load(). Waits half a second at most: a file
 * system that does not answer holds up the opener, not the caller.
 */
int top_opener_read(struct top_opener *opener, pid_t pid, const char *chunk,
		    struct top_source *ret_source, const char **ret_why);

#endif
