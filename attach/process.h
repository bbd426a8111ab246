/* SPDX-License-Identifier: MIT */
/* Which processes are there, and do they still run the same program? */
#ifndef ATTACH_PROCESS_H
#define ATTACH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/reader.h"

/* ---- Live process ----------------------------------------------------------------------- */

/** A process that we look at; holds descriptors of its /proc entries, no trace attachment. */
struct attach_process;

/**
 * Open process @p pid and check that we may trace it; stops nothing.
 *
 * @param why FAILURE_GONE (no such process), FAILURE_NOT_FOUND (a kernel thread or a zombie: no
 *            memory to look at; `step` tells which), FAILURE_DENIED (permission), FAILURE_BUSY
 *            (traced by the process whose pid is in `address`).
 * Source: proc(5), ptrace(2) "Ptrace access mode checking".
 */
int attach_process_open(pid_t pid, struct attach_process **ret_process, struct failure *why);

/** The same for a process whose threads are not to be stopped: a tracer is not in the way of that.
 */
int attach_process_open_to_read(pid_t pid, struct attach_process **ret_process,
				struct failure *why);
void attach_process_close(struct attach_process *process);

/** The id under which /proc shows the process's memory: its pid, or where the main thread has left
 *  with pthread_exit() and others run on, that of one of these. */
pid_t attach_process_pid(const struct attach_process *process);

/** Reader over the live process (process_vm_readv). Borrowed, valid until close. The bytes are
 *  those of a moment while threads run; check what is read. */
const struct attach_reader *attach_process_reader(struct attach_process *process);

/**
 * Visit the runs of pages in [start, end) that are in memory, from the lowest: reading others would
 * make the process larger, or swap. Where the kernel tells them (Linux 6.7), pages are left out
 * that were read but never written.
 * @param visit Gets whole pages, and once in a while an empty range: nothing more is in memory
 *              below it. Returns true to go on. A hole of 1 TiB costs some ten microseconds, before
 *              Linux 6.7 some seconds.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_SYSTEM.
 * Source: Linux Documentation/admin-guide/mm/pagemap.rst. Stopped window: no.
 */
int attach_process_each_resident(const struct attach_process *process, uint64_t start, uint64_t end,
				 bool (*visit)(void *context, uint64_t start, uint64_t end),
				 void *context, struct failure *why);

/** The fate of a process since attach_process_open() or attach_process_note_exec(). */
enum attach_fate {
	ATTACH_FATE_SAME,
	ATTACH_FATE_EXEC,  /**< Another program runs in it. */
	ATTACH_FATE_ENDED, /**< Gone, or a zombie. */
};

/**
 * One read in /proc and one of memory, about 15 us. An exec shows in the addresses of text and
 * stack, which address space randomisation moves, and in the kernel's random bytes for the program
 * otherwise. A process whose main thread alone has left goes on.
 * Source: proc(5), stat; getauxval(3), AT_RANDOM.
 */
enum attach_fate attach_process_fate(struct attach_process *process);

/** Take the program that runs now as the known one. */
void attach_process_note_exec(struct attach_process *process);

/** Process that traces @p tid, 0 if none or unknown. Source: proc(5), status, TracerPid. */
pid_t attach_tracer_of(pid_t pid, pid_t tid);

/**
 * Explain a refusal or a strange process in the user's terms: Yama's setting, another user, another
 * tracer, a kernel thread, a zombie, with what to do about it.
 * @param ret_text Always terminated.
 */
void attach_explain(pid_t pid, const struct failure *why, char *ret_text, size_t len);

/* ---- Finding processes ------------------------------------------------------------------ */

/** Names of a process. Bytes that a terminal might obey are replaced by '?'. */
struct attach_names {
	char command[64];  /**< The kernel's name for it, at most 15 characters long. */
	char program[256]; /**< Base name of its executable; "" where that cannot be seen. */
};

/** Numbers of all processes that /proc shows, ascending.
 *  @param ret_pids Freed by the caller. Source: proc(5). */
int attach_list_processes(pid_t **ret_pids, size_t *ret_count, struct failure *why);

/** @return The parent's pid, 0 if there is none, or if @p pid is gone. Source: proc(5), stat. */
pid_t attach_parent_of(pid_t pid);

/** @return The pid of the process that leads the session of @p pid, also where that has ended; 0 if
 * it is in another pid namespace, or if @p pid is gone. Source: setsid(2). */
pid_t attach_session_of(pid_t pid);

/** When a process began, in ns of CLOCK_BOOTTIME; 0: unknown. Source: proc(5), stat. */
uint64_t attach_start_of(pid_t pid);

/** Whose rights a process has; more groups are left out. */
enum { ATTACH_GROUPS_MAX = 64 };
struct attach_identity {
	uid_t uid;
	gid_t gid, groups[ATTACH_GROUPS_MAX];
	size_t group_count;
};

/** The real user and group: the others of a set-uid program are not those of its user, who may have
 *  chosen what it does. @return Whether there is such a process. Source: proc(5), status. */
bool attach_identity_of(pid_t pid, struct attach_identity *ret_identity);

/** @return Whether there is such a process. Source: proc(5), comm and exe. */
bool attach_names_of(pid_t pid, struct attach_names *ret_names);

/**
 * Processes that have the number @p inner in a pid namespace below ours: in a container, mostly.
 * @param ret_pids Their numbers here, ascending, at most @p size.
 * @return How many there are.
 * Source: proc(5), status, NSpid.
 */
size_t attach_find_inner(pid_t inner, pid_t *ret_pids, size_t size);

/** Whether /proc shows the pid namespace that this process is in; unshare(1) without --mount-proc
 *  leaves another one there, whose numbers mean other processes to ptrace. */
bool attach_proc_is_ours(void);

/* ---- Its files -------------------------------------------------------------------------- */

/** Its root directory. @return An O_PATH descriptor, or -1 with errno set. */
int attach_root_open(pid_t pid);

/**
 * Open a regular file by its path below a root. Links are followed inside of it only, and nothing
 * but a regular file is opened, because opening a device may have effects; EINVAL then. Nor are the
 * kernel's own files, which look regular, and show what the one who opens them may see. Does not
 * wait for a lease: such a file is not opened.
 * @return A descriptor, or -1 with errno set: ENOSYS before Linux 5.6.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int attach_root_open_file(int root_fd, const char *path);

/** Turn an O_PATH descriptor of a regular file into one for reading; takes @p fd over. */
int attach_reopen_regular(int fd);

#endif
