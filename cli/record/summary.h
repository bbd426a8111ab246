/* SPDX-License-Identifier: MIT */
/* What ljrecord tells of a recording, while it runs and at its end. */
#ifndef CLI_RECORD_SUMMARY_H
#define CLI_RECORD_SUMMARY_H

#include <stdio.h>

#include "daemon/record.h"

/** One line on the terminal, rewritten in place. A daemon_options.progress function. */
void summary_progress(void *context, const struct daemon_stats *stats);
/** Wipe that line, if there is one. */
void summary_clear_progress(void);

/** What was recorded, for people. */
void summary_print(FILE *file, const struct daemon_options *options,
		   const struct daemon_stats *stats);

/** The same numbers as JSON in place of a file's content. @return 0, or -1 with errno. */
int summary_write_json(int fd, const struct daemon_options *options,
		       const struct daemon_stats *stats);

#endif
