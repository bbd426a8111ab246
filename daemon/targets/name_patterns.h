/* SPDX-License-Identifier: MIT */
/* Private to daemon: does the name of a process match a pattern? */
#ifndef DAEMON_TARGETS_NAME_PATTERNS_H
#define DAEMON_TARGETS_NAME_PATTERNS_H

#include <stddef.h>

#include "attach/process.h"

/** Compiled patterns. */
struct name_patterns;

/**
 * Compile patterns.
 * @param names POSIX extended regular expressions; borrowed for the call.
 * @param why FAILURE_INVALID: names[why->address] is not a regular expression.
 */
int name_patterns_create(const char *const *names, size_t count,
			 struct name_patterns **ret_patterns, struct failure *why);
void name_patterns_destroy(struct name_patterns *patterns);

/** Whether the command or the program matches one of them; false without patterns. */
bool name_patterns_match(const struct name_patterns *patterns, const struct attach_names *names);

#endif
