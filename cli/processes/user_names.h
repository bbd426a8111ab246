/* SPDX-License-Identifier: MIT */
/* What is a user called? */
#ifndef CLI_PROCESSES_USER_NAMES_H
#define CLI_PROCESSES_USER_NAMES_H

#include <sys/types.h>

/**
 * Get a user's name, or the number of a user who has none.
 * @return Safe for a terminal; borrowed until the next call.
 */
const char *user_names_of(uid_t uid);

#endif
