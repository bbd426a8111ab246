/* SPDX-License-Identifier: MIT */
/* Private to daemon: which processes are to be recorded besides those that were given by pid. */
#ifndef DAEMON_TARGETS_FINDER_H
#define DAEMON_TARGETS_FINDER_H

#include "daemon/record.h"

/** Looks through /proc for processes by name and by parent. */
struct finder;

/** @param options Borrowed until destroy.
 *  @param why FAILURE_INVALID: names[why->address] is no regular expression. */
int finder_create(const struct daemon_options *options, struct finder **ret_finder,
		  struct failure *why);
void finder_destroy(struct finder *finder);

/** What the finder asks and tells. */
struct finder_listener {
	/** Whether the process is recorded, or was refused, already. */
	bool (*is_known)(void *context, pid_t pid);
	/** @return Whether it is taken: then its children count too. */
	bool (*found)(void *context, pid_t pid);
	void *context;
};

/**
 * Look for processes if it is time for that. A look reads about one process that is new since the
 * last looks, or all of them once a second, and costs at most a twentieth of our time.
 */
void finder_poll(struct finder *finder, const struct finder_listener *listener, uint64_t now_ns);

#endif
