/* SPDX-License-Identifier: MIT */
/* Private to daemon: the list of a recording's processes. */
#ifndef DAEMON_TARGETS_TARGET_LIST_H
#define DAEMON_TARGETS_TARGET_LIST_H

#include "daemon/recorder/recorder.h"

/** @return NULL if the process is not part of the recording. */
struct recorder_target *recorder_find_entry(struct recorder *recorder, pid_t pid);

/**
 * Add a process to the target list.
 * @param process Owned by the list, and closed on failure; NULL if opening was refused.
 * @param why FAILURE_LIMIT, FAILURE_NO_MEMORY.
 * @return NULL on failure.
 */
struct recorder_target *recorder_add_entry(struct recorder *recorder, pid_t pid,
					   struct attach_process *process, struct failure *why);

/** Remove an entry; the last entry moves to its place. */
void recorder_remove_entry(struct recorder *recorder, size_t index);

/** Let go of all processes. */
void recorder_close_processes(struct recorder *recorder);

#endif
