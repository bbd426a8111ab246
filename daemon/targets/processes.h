/* SPDX-License-Identifier: MIT */
/* Private to daemon: shared by recorder.c, processes.c and startup.c. */
#ifndef DAEMON_TARGETS_PROCESSES_H
#define DAEMON_TARGETS_PROCESSES_H

#include "daemon/recorder/recorder.h"

enum {
	/* A process without LuaJIT may load it: looked for at first after so long. */
	PROCESSES_LOOK_FIRST_NS = 5 * 1000 * 1000,
};

/* ---- The list --------------------------------------------------------------------------- */

/** @return NULL if the process is not among those of the recording. */
struct recorder_target *recorder_find_entry(struct recorder *recorder, pid_t pid);

/** @param process Taken over, closed on failure; NULL where it was refused.
 *  @param why FAILURE_LIMIT, FAILURE_NO_MEMORY. @return NULL on failure. */
struct recorder_target *recorder_add_entry(struct recorder *recorder, pid_t pid,
					   struct attach_process *process, struct failure *why);

/** The last entry takes its place. */
void recorder_remove_entry(struct recorder *recorder, size_t index);

/** Note what a process is called now, and what it is, for the summary. */
void recorder_note_name(struct recorder *recorder, struct recorder_target *of);
void recorder_note_kind(struct recorder *recorder, struct recorder_target *of,
			enum daemon_process_kind kind);

/** @return Whether something is so of one process at least. */
bool recorder_any(const struct recorder *recorder, bool (*is_so)(const struct recorder_target *of));

bool entry_is_open(const struct recorder_target *of);
bool entry_has_luajit(const struct recorder_target *of);
bool entry_has_vm(const struct recorder_target *of);

/* ---- Messages --------------------------------------------------------------------------- */

/** Whether one process was asked for, and no others can come. */
bool recorder_is_single(const struct recorder *recorder);

/** Tell the user something that does not end the recording. */
void recorder_notice(struct recorder *recorder, const char *text);

/** Set the end and its text. @return -1. */
int recorder_end_with(struct recorder *recorder, enum daemon_end end, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The end where no process is left. @param lost They go on without LuaJIT. */
void recorder_end_all(struct recorder *recorder, bool lost);

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

#endif
