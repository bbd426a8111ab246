/* SPDX-License-Identifier: MIT */
/* The command line of ljrecord. */
#ifndef CLI_RECORD_RECORD_ARGUMENTS_H
#define CLI_RECORD_RECORD_ARGUMENTS_H

#include "cli/common/recording.h"

/** What the command line says. Strings are those of argv. */
struct arguments {
	struct daemon_options options;
	struct daemon_output outputs[DAEMON_OUTPUTS_MAX]; /* the options' */
	const struct format_writer_ops *format;		  /* of --format, or NULL */
	const char *stats;
	int stats_fd;
	bool stats_created; /* the file did not exist before */
	bool quiet, explain;
	char **command; /* NULL without */
	struct options_pids pids;
	struct options_names names;
};

/**
 * Read the command line. Help and version are printed and end the process.
 * @param ret_arguments Holds the defaults; release with arguments_deinit() in any case.
 * @return -1 to go on, else the exit code, with a message printed.
 */
int arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void arguments_deinit(struct arguments *arguments);

/** Print what is wrong, and that there is a help. @param argument May be NULL. @return EXIT_USAGE.
 */
int arguments_refuse(const char *text, const char *argument);

#endif
