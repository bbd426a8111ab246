/* SPDX-License-Identifier: MIT */
/* Private to daemon: which processes are recorded besides those given by pid? */
#ifndef DAEMON_TARGETS_FINDER_H
#define DAEMON_TARGETS_FINDER_H

#include "daemon/record.h"

/** Searches /proc for processes by name and by parent. */
struct finder;

/**
 * Create a finder.
 * @param options Borrowed until destroy.
 * @param why FAILURE_INVALID: names[why->address] is not a regular expression.
 */
int finder_create(const struct daemon_options *options, struct finder **ret_finder,
		  struct failure *why);
void finder_destroy(struct finder *finder);

/** Callbacks of the finder. */
struct finder_listener {
	/** Whether the process is already recorded, or was refused. */
	bool (*is_known)(void *context, pid_t pid);
	/** @return Whether the process is accepted, so that its children count, too. */
	bool (*found)(void *context, pid_t pid);
	void *context;
};

/** Search for processes if a poll is due. A poll reads data of the new processes, or once a second
 * of all processes. It uses at most 1/20 of our time. */
void finder_poll(struct finder *finder, const struct finder_listener *listener, uint64_t now_ns);

#endif
