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

/** An open process. Traces nothing. */
struct attach_process;

/**
 * Open process @p pid and check that we may trace it. Stops nothing.
 *
 * @param why FAILURE_GONE (no such process), FAILURE_NOT_FOUND (a thread, kernel thread, zombie or
 *        32-bit program: nothing that we can read; `step` says which), FAILURE_DENIED (permission),
 *        FAILURE_BUSY (traced by the process whose pid is in `address`).
 * Source: proc(5), ptrace(2) "Ptrace access mode checking".
 */
int attach_process_open(pid_t pid, struct attach_process **ret_process, struct failure *why);

/** Open a process whose threads we do not stop. Another tracer is then no obstacle. */
int attach_process_open_to_read(pid_t pid, struct attach_process **ret_process,
				struct failure *why);
void attach_process_close(struct attach_process *process);

/** The id under which /proc shows the process's memory. This is its pid; or, if the main thread has
 *  left with pthread_exit(), the id of a thread that still runs. */
pid_t attach_process_pid(const struct attach_process *process);

/** Reader of the live process (process_vm_readv). Borrowed, valid until close. Threads may run and
 *  change the memory between two reads, so check what you read. */
const struct attach_reader *attach_process_reader(struct attach_process *process);

/**
 * Visit the runs of pages in [start, end) that are in memory, lowest first. A read of other pages
 * would make the process larger, or swap. Linux 6.7 and later also leave out pages that were read
 * but never written.
 * Stopped window: no.
 * @param visit Gets whole pages, and at times an empty range: no further page below it is in
 *        memory. Returns true to continue. A hole of 1 TiB costs some ten microseconds; before
 *        Linux 6.7, some seconds.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_SYSTEM.
 * Source: Linux Documentation/admin-guide/mm/pagemap.rst.
 */
int attach_process_each_resident(const struct attach_process *process, uint64_t start, uint64_t end,
				 bool (*visit)(void *context, uint64_t start, uint64_t end),
				 void *context, struct failure *why);

/** What happened to a process since attach_process_open() or attach_process_note_exec(). */
enum attach_fate {
	ATTACH_FATE_SAME,
	ATTACH_FATE_EXEC,  /**< Another program runs in it. */
	ATTACH_FATE_ENDED, /**< Gone, or a zombie. */
};

/**
 * Check whether a process still runs the same program. Costs one read in /proc and one of memory,
 * about 15 us. An exec changes the addresses of text and stack, because the kernel randomises them.
 * Without randomisation it changes the random bytes that the kernel gives to each program. A
 * process whose main thread alone has left is not ended.
 * Source: proc(5), stat; getauxval(3), AT_RANDOM.
 */
enum attach_fate attach_process_fate(struct attach_process *process);

/** Remember the program that runs now as the known one. */
void attach_process_note_exec(struct attach_process *process);

/** Process that traces @p tid; 0: none or unknown. Source: proc(5), status, TracerPid. */
pid_t attach_tracer_of(pid_t pid, pid_t tid);

/**
 * Explain a failure to open or trace a process in the user's terms, and say what to do: Yama's
 * setting, another user, another tracer, a kernel thread, a zombie.
 * @param ret_text Always terminated.
 */
void attach_explain(pid_t pid, const struct failure *why, char *ret_text, size_t len);

/* ---- Finding processes ------------------------------------------------------------------ */

/** Names of a process. '?' replaces bytes that could control a terminal. */
struct attach_names {
	char command[64];  /**< The kernel's name for it, at most 15 characters long. */
	char program[256]; /**< Base name of its executable; "" if we may not see it. */
};

/**
 * List the pids of all processes that /proc shows, ascending.
 * @param ret_pids Freed by the caller.
 * Source: proc(5).
 */
int attach_list_processes(pid_t **ret_pids, size_t *ret_count, struct failure *why);

/** @return The parent's pid; 0 if there is none or @p pid is gone. Source: proc(5), stat. */
pid_t attach_parent_of(pid_t pid);

/**
 * @return The pid that leads the session of @p pid, also if that process has ended; 0 if the leader
 *         is in another pid namespace or @p pid is gone.
 * Source: setsid(2).
 */
pid_t attach_session_of(pid_t pid);

/** When a process began, in ns of CLOCK_BOOTTIME; 0: unknown. Source: proc(5), stat. */
uint64_t attach_start_of(pid_t pid);

/** The rights of a process; further groups are left out. */
enum { ATTACH_GROUPS_MAX = 64 };
struct attach_identity {
	uid_t uid;
	gid_t gid, groups[ATTACH_GROUPS_MAX];
	size_t group_count;
};

/**
 * Read the real user and group of a process. The other ids of a set-uid program are not its user's,
 * and the user may have chosen what it does.
 * @return Whether the process exists.
 * Source: proc(5), status.
 */
bool attach_identity_of(pid_t pid, struct attach_identity *ret_identity);

/** @return Whether the process exists. Source: proc(5), comm and exe. */
bool attach_names_of(pid_t pid, struct attach_names *ret_names);

/**
 * Find processes that have the pid @p inner in a pid namespace below ours, usually in a container.
 * @param ret_pids Their pids in our namespace, ascending, at most @p size.
 * @return How many there are.
 * Source: proc(5), status, NSpid.
 */
size_t attach_find_inner(pid_t inner, pid_t *ret_pids, size_t size);

/** Whether /proc shows our own pid namespace. After unshare(1) without --mount-proc, /proc still
 *  shows another namespace, and ptrace takes its pids for other processes. */
bool attach_proc_is_ours(void);

/* ---- Files of a process ----------------------------------------------------------------- */

/** Open a process's root directory. @return An O_PATH descriptor, or -1 with errno set. */
int attach_root_open(pid_t pid);

/**
 * Open a regular file by its path below a root, as attach_reopen_regular() does. We follow links
 * only inside the root.
 * @return A descriptor, or -1 with errno set: ENOSYS before Linux 5.6.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int attach_root_open_file(int root_fd, const char *path);

/**
 * Open the regular file of an O_PATH descriptor for reading; closes @p fd. Other files fail with
 * EINVAL, because opening a device may have effects. The kernel's own files also fail: they look
 * regular, but show what their opener may see. A file with a lease fails at once.
 */
int attach_reopen_regular(int fd);

#endif
