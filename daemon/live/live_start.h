/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does the sampler of a live session start and end? */
#ifndef DAEMON_LIVE_LIVE_START_H
#define DAEMON_LIVE_LIVE_START_H

#include "daemon/live/live_session.h"

/**
 * Start the sampler and give up privileges.
 * @param ret_fd Our end of its socket.
 */
int live_start_sampler(const struct daemon_options *options, pid_t *ret_pid, int *ret_fd,
		       struct failure *why);

/** End the sampler and reap it. */
void live_end_sampler(struct daemon_live *session);

#endif
