/* SPDX-License-Identifier: MIT */
/* Private to daemon: which descriptors and capabilities does each process of a recording keep? */
#ifndef DAEMON_RIGHTS_SANDBOX_H
#define DAEMON_RIGHTS_SANDBOX_H

#include <stddef.h>

/**
 * Close all descriptors except the standard files and these.
 * @param fds Sorted by the call; -1 is ignored.
 */
void sandbox_close_others(int *fds, size_t count);

/** Give up all capabilities except these, if it has them, and prevent gaining any by running a
 * program. */
void sandbox_keep_capabilities(const int *capabilities, size_t count);

#endif
