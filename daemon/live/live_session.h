/* SPDX-License-Identifier: MIT */
/* Private to daemon: a watch. */
#ifndef DAEMON_LIVE_LIVE_SESSION_H
#define DAEMON_LIVE_LIVE_SESSION_H

#include "daemon/watch.h"
#include "daemon/writer/message.h"

struct daemon_watch {
	pid_t pid; /* of the sampler; 0 once it was reaped */
	int fd;	   /* -1 once it has ended */
	struct message_receiver receiver;
	struct format_live *live;
	struct daemon_vitals vitals;
	bool greeted;
	/* Of the refresh before. */
	struct daemon_moment totals;
	struct daemon_moment history[DAEMON_HISTORY];
	size_t moments; /* in all */
};

/** Start the sampler and give up privileges. @param ret_fd Of the socket to it. */
int watch_start_sampler(const struct daemon_options *options, pid_t *ret_pid, int *ret_fd,
			struct failure *why);

/** End the sampler and reap it. */
void watch_end_sampler(struct daemon_watch *watch);

#endif
