/* SPDX-License-Identifier: MIT */
/* Private to daemon: which VMs has a process of the list? */
#ifndef DAEMON_LIST_LISTED_VMS_H
#define DAEMON_LIST_LISTED_VMS_H

#include "daemon/list.h"

/**
 * Read the VMs of a process, their fork and their heaps. Stops no thread.
 * @param end_ns When to stop, by clock_now_ns(). Opening a process may take some milliseconds more.
 * @return Whether the process could be read in time.
 */
bool listed_read_vms(struct daemon_listed *listed, uint64_t end_ns);

#endif
