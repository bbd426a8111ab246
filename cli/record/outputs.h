/* SPDX-License-Identifier: MIT */
/* The outputs that ljrecord's command line names. */
#ifndef CLI_RECORD_OUTPUTS_H
#define CLI_RECORD_OUTPUTS_H

#include "cli/record/record_arguments.h"

/** Add one. @return false where there are too many. */
bool outputs_add(struct arguments *arguments, const char *path);

/** All are known: choose their formats, by --format or by their names. Without any there is
 *  ljprof.bin. @return -1 to go on, else the exit code, with a message printed. */
int outputs_choose_formats(struct arguments *arguments);

/** Whether each goes to a file of its own, so that none is lost; looks at the files. @return as
 *  before. */
int outputs_check(const struct arguments *arguments);

/** Whether one of them goes where the descriptor leads. Not so with /dev/null or a terminal. */
bool outputs_lead_to(const struct arguments *arguments, int fd);

#endif
