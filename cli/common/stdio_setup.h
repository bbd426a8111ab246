/* SPDX-License-Identifier: MIT */
/* How does a command start if standard streams are closed? */
#ifndef CLI_COMMON_STDIO_SETUP_H
#define CLI_COMMON_STDIO_SETUP_H

/** Occupy closed standard files before anything else is opened: using them then fails, and no other
 * file gets their numbers. */
void stdio_occupy_files(void);

#endif
