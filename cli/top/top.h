/* SPDX-License-Identifier: MIT */
/* What do the parts of ljtop share? */
#ifndef CLI_TOP_TOP_H
#define CLI_TOP_TOP_H

#include <stdio.h>

#include "cli/common/recording.h"
#include "daemon/live.h"

/** Values of the command line. Strings are those of argv. */
struct arguments {
	struct daemon_options options;
	struct format_live_options live;
	struct format_live_query query; /**< What plain screens show. */
	double delay_s;
	bool batch, json, no_mouse, lists;
	long iterations;  /**< 0: until it ends. */
	long width, rows; /**< Columns; rows of the table, 0: all. */
	struct options_pids pids;
	struct options_names names;
};

/**
 * Read the command line. --help and --version print and end the process.
 * @param ret_arguments Holds the defaults; always release with top_arguments_deinit().
 * @return -1 to continue, else the exit code, with a message printed.
 */
int top_arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void top_arguments_deinit(struct arguments *arguments);

/** Sample the processes that the lists now name. */
void top_arguments_use_processes(struct arguments *arguments);

/**
 * Print one plain screen.
 * @return 0, or -1 with FAILURE_NO_MEMORY. The caller checks ferror() of @p file.
 */
int top_print_text(FILE *file, const struct arguments *arguments, struct daemon_live *session,
		   struct failure *why);

/** Print one refresh as an object on one line. The keys are an interface: ljtop(1). */
int top_print_json(FILE *file, const struct arguments *arguments, struct daemon_live *session,
		   struct failure *why);

#endif
