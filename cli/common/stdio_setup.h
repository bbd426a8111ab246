/* SPDX-License-Identifier: MIT */
/* The standard streams of a command. */
#ifndef CLI_COMMON_STDIO_SETUP_H
#define CLI_COMMON_STDIO_SETUP_H

/** Occupy standard files that are closed, before anything is opened: using them fails, and nothing
 *  else gets their numbers. */
void stdio_occupy_files(void);

#endif
