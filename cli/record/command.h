/* SPDX-License-Identifier: MIT */
/* How does ljrecord start and record a command? */
#ifndef CLI_RECORD_COMMAND_H
#define CLI_RECORD_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/** A command that waits for its start. */
struct command {
	pid_t pid;
	int go_fd;     /**< Write one byte here to start it; if this is closed first, it ends. */
	int failed_fd; /**< A byte can be read here if it could not be run. */
};

/**
 * Fork a command that waits before its exec until the recorder is ready, so that the recording
 * misses nothing. Under sudo it runs as the user who called sudo (SUDO_UID, SUDO_GID).
 * @return 0, or -1 with a message printed.
 */
int command_start(char **argv, struct command *ret_command);

/**
 * Wait until the command, which continues after the recording, ends or @p stop is set. A command
 * that was never started ends at once. Closes its descriptors.
 * @return false if it could not be run; a message was then printed.
 */
bool command_finish(struct command *command, const volatile sig_atomic_t *stop);

#endif
