/* SPDX-License-Identifier: MIT */
/* What does the command line of ljrecord say? */
#ifndef CLI_RECORD_RECORD_ARGUMENTS_H
#define CLI_RECORD_RECORD_ARGUMENTS_H

#include "cli/common/recording.h"

/** Bytes of a name that is made from a process. */
enum { OUTPUT_NAME_MAX = 160 };

/** Values of the command line. Strings are those of argv. */
struct arguments {
	struct daemon_options options;
	struct daemon_output outputs[DAEMON_OUTPUTS_MAX]; /* the options point to them */
	const struct format_writer_ops *format;		  /* of --format, or NULL */
	const char *stats;
	int stats_fd;
	bool stats_created;  /* the file did not exist before */
	bool images_created; /* nor did the folder of --save-images */
	bool quiet, explain;
	/* The output's name, made from the process: there was no --output. "": there was one. */
	char own_output[OUTPUT_NAME_MAX];
	char **command; /* NULL: none */
	struct options_pids pids;
	struct options_names names;
};

/**
 * Read the command line. --help and --version print and end the process.
 * @param ret_arguments Holds the defaults; always release with arguments_deinit().
 * @return -1 to continue, else the exit code, with a message printed.
 */
int arguments_parse(int argc, char **argv, struct arguments *ret_arguments);
void arguments_deinit(struct arguments *arguments);

/**
 * Print what is wrong, and a hint at --help.
 * @param argument May be NULL.
 * @return EXIT_USAGE.
 */
int arguments_refuse(const char *text, const char *argument);

#endif
