/* SPDX-License-Identifier: MIT */
/* Private to daemon: how is a list of processes made, and passed on while it grows? */
#ifndef DAEMON_LIST_SCAN_H
#define DAEMON_LIST_SCAN_H

#include "daemon/list.h"

/** Most processes of a list. */
enum { SCAN_LISTED_MAX = 1 << 16 };

enum scan_kind {
	SCAN_LISTED,   /**< A process is new or has changed. */
	SCAN_EXAMINED, /**< All processes are known; more about them follows. */
	SCAN_END,      /**< The list is complete. */
};

/** A message of the scan, in one piece. */
struct scan_message {
	uint32_t kind;
	uint32_t index; /**< LISTED: in the list. */
	struct daemon_listed listed;
	uint64_t denied, matched; /**< EXAMINED and END: as in struct daemon_list. */
	char note[512];
};

/**
 * Make a list, and write a message for each of its steps.
 * @param fd A pipe.
 */
void scan_run(const struct daemon_list_options *options, int fd);

#endif
