/* SPDX-License-Identifier: MIT */
/* Which lines of a new profile are the hottest ones? */
#ifndef CLI_RECORD_HOTTEST_H
#define CLI_RECORD_HOTTEST_H

#include <stdio.h>

/** Print the hottest ten lines of a profile and how to see more of it. Prints nothing if it cannot
 * be read, because it is complete in any case. */
void hottest_print(FILE *file, const char *path);

#endif
