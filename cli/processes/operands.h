/* SPDX-License-Identifier: MIT */
/* Which processes do the words of a command line mean? */
#ifndef CLI_PROCESSES_OPERANDS_H
#define CLI_PROCESSES_OPERANDS_H

#include <stdbool.h>

#include "cli/common/option_values.h"

/** Whether the word is made of digits and commas: one pid or several. */
bool operands_is_pids(const char *word);

/**
 * Add words to the lists: a pid, several pids separated by commas, or the name of a process.
 * @return -1 to continue, else the exit code, with a message printed.
 */
int operands_take(const char *program, char *const *words, int count, struct options_pids *pids,
		  struct options_names *names);

/** Whether each word is a pid, or the name of a process that contains LuaJIT or cannot be read. */
bool operands_are_processes(char *const *words, int count);

/**
 * Check that the names which operands_take() added are names of processes with LuaJIT, or of
 * processes that cannot be read.
 * @param hint What else the user may have meant, for brackets; may be NULL.
 * @return As operands_take().
 */
int operands_check(const char *program, const struct options_names *names, const char *hint);

/**
 * Replace names and patterns by the pids of the processes with LuaJIT that have them now.
 * @return As operands_take().
 */
int operands_resolve(const char *program, const struct options_names *names,
		     struct options_pids *pids);

#endif
