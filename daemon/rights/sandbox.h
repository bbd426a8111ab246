/* SPDX-License-Identifier: MIT */
/* Private to daemon: what the processes of a recording keep of what they were given. */
#ifndef DAEMON_RIGHTS_SANDBOX_H
#define DAEMON_RIGHTS_SANDBOX_H

#include <stddef.h>

/** Close all descriptors but the standard files and these; -1 among them is none. Sorts them. */
void sandbox_close_others(int *fds, size_t count);

/** Give up all capabilities but these, as far as they are there, and gain none by a program. */
void sandbox_keep_capabilities(const int *capabilities, size_t count);

#endif
