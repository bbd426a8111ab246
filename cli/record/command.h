/* SPDX-License-Identifier: MIT */
/* The command that ljrecord starts and records. */
#ifndef CLI_RECORD_COMMAND_H
#define CLI_RECORD_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/** A command that waits for its start. */
struct command {
	pid_t pid;
	int go_fd;     /**< One byte written here starts it; closed without one it ends. */
	int failed_fd; /**< A byte can be read here once it could not be run. */
};

/**
 * Fork a command that waits before its exec until the recorder is ready, so that nothing of it is
 * missed. Under sudo it runs as the user who called sudo (SUDO_UID, SUDO_GID).
 * @return 0, or -1 with a message printed.
 */
int command_start(char **argv, struct command *ret_command);

/**
 * Wait for the command, which goes on after the recording, until it ends or @p stop is set; it ends
 * if it was never started. Closes its descriptors.
 * @return false where it could not be run; that has been said then.
 */
bool command_finish(struct command *command, const volatile sig_atomic_t *stop);

#endif
