/* SPDX-License-Identifier: MIT */
#ifndef CLI_COMMON_STDIO_SETUP_H
#define CLI_COMMON_STDIO_SETUP_H

/** Occupy standard files that are closed, before anything is opened: using them fails, and nothing
 *  else gets their numbers. */
void standard_occupy_files(void);

#endif
