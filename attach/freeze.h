/* SPDX-License-Identifier: MIT */
/* What is in all of a process's memory at one moment? */
#ifndef ATTACH_FREEZE_H
#define ATTACH_FREEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/process.h"

/**
 * A large copy of a process's memory, read in one go while the process is frozen.
 *
 * An image holds what one stop reads; a copy holds a heap. We allocate all memory before the
 * freeze, so that the frozen process waits for the reads alone.
 */
struct attach_copy;

/**
 * @param max_bytes Bytes of all ranges together; attach_copy_want() refuses more.
 * @return NULL when out of memory.
 */
struct attach_copy *attach_copy_create(size_t max_bytes);
void attach_copy_destroy(struct attach_copy *copy);

/**
 * Ask for [start, end), before the first freeze. attach_freeze() reads ranges in the order of these
 * calls. Ranges must not overlap.
 * @param why FAILURE_LIMIT (the copy then wants only the part that fits), FAILURE_NO_MEMORY.
 * @return 0 or -1.
 */
int attach_copy_want(struct attach_copy *copy, uint64_t start, uint64_t end, struct failure *why);

/** Bytes read. */
size_t attach_copy_bytes(const struct attach_copy *copy);

/** Reader of the copied bytes; other addresses fail with FAILURE_FAULT. Borrowed. */
const struct attach_reader *attach_copy_reader(struct attach_copy *copy);

/**
 * A reader that reads whole pages from another reader, caches some of them, and notes the number of
 * each page. A walk over a running process shows which pages a freeze must copy.
 */
struct attach_pages;

enum { ATTACH_PAGE_BYTES = 4096 };

/**
 * @param behind Borrowed.
 * @param max_pages Pages to note at most; reads of further pages fail with FAILURE_LIMIT.
 * @return NULL when out of memory.
 */
struct attach_pages *attach_pages_create(const struct attach_reader *behind, size_t max_pages);
void attach_pages_destroy(struct attach_pages *pages);
const struct attach_reader *attach_pages_reader(struct attach_pages *pages);

/** Drop the cached bytes, so that the next reads see the memory again. The noted pages stay. */
void attach_pages_forget(struct attach_pages *pages);

/** Note the pages of [start, end) without reading them. @return false if there is no room. */
bool attach_pages_note(struct attach_pages *pages, uint64_t start, uint64_t end);

/**
 * Numbers of all noted pages, ascending; borrowed until the next read or note.
 * @return NULL when out of memory.
 */
const uint64_t *attach_pages_list(struct attach_pages *pages, size_t *ret_count);

/** A thread during a freeze. */
struct attach_frozen_thread {
	pid_t tid;
	bool is_stopped;		   /**< We stopped it, and know all registers. */
	bool is_asleep;			   /**< It slept, so we did not stop it. */
	int64_t syscall;		   /**< System call in which it sleeps; -1: none. */
	bool woke;			   /**< It slept, and ran before the copy was complete. */
	bool is_unknown;		   /**< It did not stop in time, and ran during the copy. */
	uint64_t sp, pc;		   /**< Set unless is_unknown. */
	struct attach_registers registers; /**< Set if we stopped it. */
};

/** The outcome of a freeze. */
struct attach_freeze {
	struct attach_frozen_thread *threads;
	size_t thread_count;
	size_t stopped_count; /**< Threads that we stopped. */
	size_t woken; /**< Threads that ran during the copy, because they woke or did not stop in
			 time. */
	uint64_t pause_ns; /**< From the stop of the first thread to the release of the last; 0:
			      none was stopped. */
	bool is_full;	   /**< The process had more threads than we can stop; the others ran. */
	bool is_truncated; /**< The time ran out or the freeze ended early, so the copy is
			      incomplete. */
	size_t unread; /**< Ranges with unreadable parts, which the process unmapped meanwhile. */
};

/**
 * Stop all running threads of a process, copy its memory, and let the threads go.
 *
 * We do not interrupt blocked threads, because their system calls would fail with EINTR. If one
 * wakes, we notice it, stop it, and count it. A process of its own, the freezer, traces the
 * threads. A timer ends the freezer at @p max_pause_ns, and our end ends it too. The kernel then
 * lets all threads run, with the signals that arrived meanwhile, so neither our failures nor a slow
 * copy make the pause longer. A thread in a group stop stays in it.
 * @param max_pause_ns Time from the stop of the first thread; at least 1 ms. Four fifths are for
 *        copying.
 * @param copy Its ranges are read anew, in the order of attach_copy_want().
 * @param ret_freeze Set on success; release with attach_freeze_deinit(). On failure only its
 * pause_ns is set, because threads may have been stopped.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_BUSY, FAILURE_TIMEOUT (the time ran out before
 *        the threads stopped), FAILURE_NO_MEMORY, FAILURE_SYSTEM.
 * @return 0, also if the copy is truncated; or -1.
 * Source: ptrace(2); setitimer(2); Linux 6.1, kernel/ptrace.c, exit_ptrace(), __ptrace_unlink().
 */
int attach_freeze(struct attach_process *process, uint64_t max_pause_ns, struct attach_copy *copy,
		  struct attach_freeze *ret_freeze, struct failure *why);
void attach_freeze_deinit(struct attach_freeze *freeze);

#endif
