/* SPDX-License-Identifier: MIT */
/* What does ljrecord print about a recording, while it runs and at its end? */
#ifndef CLI_RECORD_SUMMARY_H
#define CLI_RECORD_SUMMARY_H

#include <stdio.h>

#include "daemon/record.h"

/** Rewrite one line on the terminal in place. A daemon_options.progress function. */
void summary_progress(void *context, const struct daemon_stats *stats);
/** Erase that line, if there is one. */
void summary_clear_progress(void);

/** Print the summary for people. */
void summary_print(FILE *file, const struct daemon_options *options,
		   const struct daemon_stats *stats);

/**
 * Write the same numbers as JSON, which replaces the file's contents.
 * @return 0, or -1 with errno.
 */
int summary_write_json(int fd, const struct daemon_options *options,
		       const struct daemon_stats *stats);

#endif
