/* SPDX-License-Identifier: MIT */
/* What are a command's standard files: closed, or a terminal of which size? */
#ifndef CLI_COMMON_STDIO_SETUP_H
#define CLI_COMMON_STDIO_SETUP_H

#include <stdbool.h>

/** Occupy closed standard files before anything else is opened: using them then fails, and no other
 * file gets their numbers. */
void stdio_occupy_files(void);

/**
 * @param ret_lines, ret_columns Set on success; at least 1.
 * @return Whether the file is a terminal that tells its size. Source: ioctl_tty(2), TIOCGWINSZ.
 */
bool stdio_terminal_size(int fd, unsigned *ret_lines, unsigned *ret_columns);

/** @return Whether an output leads to a terminal. @param path "-": standard output. */
bool stdio_is_terminal(const char *path);

#endif
