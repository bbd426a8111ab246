/* SPDX-License-Identifier: MIT */
/* Private to daemon: the processes of a recording, and what runs in them. */
#ifndef DAEMON_TARGETS_PROCESSES_H
#define DAEMON_TARGETS_PROCESSES_H

#include "daemon/recorder/recorder.h"

enum {
	/* A process without LuaJIT may load it: looked for first after this time. */
	PROCESSES_LOOK_FIRST_NS = 5 * 1000 * 1000,
};

/* ---- The list (target_list.c) ----------------------------------------------------------- */

/** @return NULL if the process is not among those of the recording. */
struct recorder_target *recorder_find_entry(struct recorder *recorder, pid_t pid);

/** @param process Taken over, closed on failure; NULL where it was refused.
 *  @param why FAILURE_LIMIT, FAILURE_NO_MEMORY. @return NULL on failure. */
struct recorder_target *recorder_add_entry(struct recorder *recorder, pid_t pid,
					   struct attach_process *process, struct failure *why);

/** The last entry takes its place. */
void recorder_remove_entry(struct recorder *recorder, size_t index);

/** Let go of all of them. */
void recorder_close_processes(struct recorder *recorder);

/* ---- One process ------------------------------------------------------------------------ */

/** Look into a process: its maps, threads and interpreters. */
int recorder_open_target(struct recorder *recorder, struct recorder_target *of,
			 struct failure *why);

/** Look at a process anew. @return false where it has ended. */
bool recorder_refresh_entry(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** A search for a VM in memory has ended: the next one is for later. */
void entry_rest_from_search(struct recorder_target *of, uint64_t begin_ns);

/** Look for new processes, if it is time for that. */
void recorder_find_new(struct recorder *recorder, uint64_t now_ns);

/** Look at those processes anew for which it is time, and for new ones. @return false where the
 *  recording ends. */
bool recorder_refresh(struct recorder *recorder, uint64_t now_ns);

/** Give up on one process. */
void recorder_deny(struct recorder *recorder, struct recorder_target *of,
		   const struct failure *why);

/**
 * A thread is in memory that no map of its process shows: look at once whether it runs another
 * program, or has mapped something, so that its sample is taken for what it is. Reads /proc, seldom
 * enough; no thread stands meanwhile.
 * @param tid The thread's. @param pc, sp Its registers.
 * @return Whether it runs another program, so that nothing that was known holds.
 */
bool recorder_follow_maps(struct recorder *recorder, struct recorder_target *of, pid_t tid,
			  uint64_t pc, uint64_t sp);

/** Have maps and threads read anew before long. */
void recorder_refresh_soon(struct recorder_target *of, uint64_t now_ns);

/** Search the process's memory for a VM, if none is known and the last search was not just now. */
void recorder_search_vm(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** Search it for more VMs than are known, after code was met that may be a VM's: the first time a
 *  second later, then once a second, and half as often after each search without a result. */
void recorder_search_more(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

#endif
