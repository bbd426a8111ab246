/* SPDX-License-Identifier: MIT */
/* Which outputs does ljrecord's command line name? */
#ifndef CLI_RECORD_OUTPUTS_H
#define CLI_RECORD_OUTPUTS_H

#include "cli/record/record_arguments.h"

/**
 * Add an output.
 * @return false if there are too many.
 */
bool outputs_add(struct arguments *arguments, const char *path);

/**
 * Choose the formats of all outputs, by --format or by their names. Without outputs, add one, which
 * gets its name later.
 * @return -1 to continue, else the exit code, with a message printed.
 */
int outputs_choose_formats(struct arguments *arguments);

/** Name the added output after the processes and the time, "nginx-4711-20261122T235959.pb.gz", if
 * there is one. */
void outputs_name_own(struct arguments *arguments);

/**
 * Check that each output has its own file, so that none is lost, and that no terminal gets binary
 * data. Reads the files' status.
 * @return As outputs_choose_formats().
 */
int outputs_check(const struct arguments *arguments);

/** Whether an output leads to the same file as the descriptor. False for /dev/null and
 * terminals. */
bool outputs_lead_to(const struct arguments *arguments, int fd);

#endif
