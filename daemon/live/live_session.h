/* SPDX-License-Identifier: MIT */
/* Private to daemon: what does a live session know? */
#ifndef DAEMON_LIVE_LIVE_SESSION_H
#define DAEMON_LIVE_LIVE_SESSION_H

#include "daemon/live.h"
#include "daemon/writer/message.h"

struct daemon_live {
	pid_t pid; /* of the sampler; 0 after it was reaped */
	int fd;	   /* -1 after the sampler has ended */
	struct message_receiver receiver;
	struct format_live *live;
	struct daemon_live_header header;
	bool greeted;
	/* At the previous refresh. */
	struct daemon_history_point totals;
	struct daemon_history_point history[DAEMON_HISTORY];
	size_t refreshes; /* number of all refreshes */
};

#endif
