/* SPDX-License-Identifier: MIT */
/* Private to daemon: which processes does a recording have, and what runs in them? */
#ifndef DAEMON_TARGETS_PROCESSES_H
#define DAEMON_TARGETS_PROCESSES_H

#include "daemon/recorder/recorder.h"

enum {
	/* When to probe a process without LuaJIT for the first time: it may load LuaJIT later. */
	PROCESSES_POLL_FIRST_NS = 5 * 1000 * 1000,
};

/** Read a process: its maps, threads and interpreters. */
int recorder_open_target(struct recorder *recorder, struct recorder_target *of,
			 struct failure *why);

/**
 * Refresh a process.
 * @return false if it has ended.
 */
bool recorder_refresh_entry(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** Schedule the next search for a VM in memory after one has ended. */
void entry_rest_from_search(struct recorder_target *of, uint64_t begin_ns);

/** Search for new processes, if that is due. */
void recorder_find_new(struct recorder *recorder, uint64_t now_ns);

/**
 * Refresh the processes that are due, and search for new ones.
 * @return false if the recording ends.
 */
bool recorder_refresh(struct recorder *recorder, uint64_t now_ns);

/** Stop recording one process. */
void recorder_deny(struct recorder *recorder, struct recorder_target *of,
		   const struct failure *why);

/**
 * Read the maps at once because a thread is outside of all known maps: either the process runs
 * another program, or it has mapped something. Reads /proc, at a bounded rate; no thread is stopped
 * meanwhile.
 * @param tid The thread.
 * @param pc, sp Its registers.
 * @return Whether the process runs another program, which invalidates all knowledge of the old one.
 */
bool recorder_follow_maps(struct recorder *recorder, struct recorder_target *of, pid_t tid,
			  uint64_t pc, uint64_t sp);

/**
 * Read the maps at once because a chain leads outside of all known maps: the process may have
 * mapped a library since. Reads /proc, at a bounded rate; no thread is stopped meanwhile.
 * @param pc Address in the code that is outside.
 * @return Whether the maps have the address now.
 */
bool recorder_learn_maps(struct recorder_target *of, uint64_t pc);

/** Refresh maps and threads soon. */
void recorder_refresh_soon(struct recorder_target *of, uint64_t now_ns);

/** Search the process's memory for a VM, if none is known and the last search was not recent. */
void recorder_search_vm(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

/** Search memory for more VMs after a sample in code that may belong to an unknown VM. The first
 * search is a second later; further ones follow once a second, and half as often after each search
 * without a result. */
void recorder_search_more(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns);

#endif
