/* SPDX-License-Identifier: MIT */
/* Which process does a user choose who named none? */
#ifndef CLI_PROCESSES_CHOICE_H
#define CLI_PROCESSES_CHOICE_H

#include "cli/common/option_values.h"
#include "daemon/list.h"

/**
 * List LuaJIT processes.
 * @return 0, or the exit code with a message printed.
 */
int choice_list(const char *program, const struct daemon_list_options *options,
		struct daemon_list *ret_list);

/**
 * Print the list to standard error, for a command line without a process.
 * @return EXIT_USAGE.
 */
int choice_refuse(const char *program, const struct daemon_list *list);

/**
 * Print the list to standard error and ask on the terminal for a process. Without a terminal, as
 * choice_refuse().
 * @return -1 to continue, else the exit code.
 */
int choice_ask(const char *program, struct options_pids *pids);

#endif
