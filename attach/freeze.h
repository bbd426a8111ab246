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
 * A large copy of memory: ranges of a process, read in one go while it is held.
 *
 * An image is for what one stop reads; this is for a heap. All room is taken before the hold, so
 * that reading costs nothing but reading.
 */
struct attach_copy;

/** @param max_bytes Of all ranges; more are refused. @return NULL when out of memory. */
struct attach_copy *attach_copy_create(size_t max_bytes);
void attach_copy_destroy(struct attach_copy *copy);

/**
 * Ask for [start, end); what is asked for first is read first. Ranges must not overlap.
 * @param why FAILURE_LIMIT (only what has room is wanted then), FAILURE_NO_MEMORY.
 * @return 0 or -1.
 */
int attach_copy_want(struct attach_copy *copy, uint64_t start, uint64_t end, struct failure *why);

/** Bytes that were read. */
size_t attach_copy_bytes(const struct attach_copy *copy);

/** Reader over what was read; FAILURE_FAULT elsewhere. Borrowed. */
const struct attach_reader *attach_copy_reader(struct attach_copy *copy);

/**
 * A reader that reads whole pages of another one, keeps some for a while, and notes which: what a
 * look over a process that runs has touched is what to copy of it.
 */
struct attach_pages;

enum { ATTACH_PAGE_BYTES = 4096 };

/** @param behind Borrowed. @param max_pages Noted at most; reads of others fail with FAILURE_LIMIT.
 *  @return NULL when out of memory. */
struct attach_pages *attach_pages_create(const struct attach_reader *behind, size_t max_pages);
void attach_pages_destroy(struct attach_pages *pages);
const struct attach_reader *attach_pages_reader(struct attach_pages *pages);

/** Forget what was kept of pages, which is read anew then; what was noted stays. */
void attach_pages_forget(struct attach_pages *pages);

/** Note the pages of [start, end) without reading them. @return false where there is no room. */
bool attach_pages_note(struct attach_pages *pages, uint64_t start, uint64_t end);

/** Numbers of all pages noted, ascending; borrowed until the next read or note. NULL when out of
 *  memory, or there is none. */
const uint64_t *attach_pages_list(struct attach_pages *pages, size_t *ret_count);

/** A thread during a hold. */
struct attach_frozen_thread {
	pid_t tid;
	bool stands;			   /**< Stopped by us: all registers are known. */
	bool is_asleep;			   /**< Not stopped, as it slept. */
	int64_t syscall;		   /**< In which it is asleep; -1: in none. */
	bool woke;			   /**< Was asleep, and ran before all was copied. */
	bool is_unknown;		   /**< Ran on: it did not stand in time. */
	uint64_t sp, pc;		   /**< Unless unknown. */
	struct attach_registers registers; /**< Where it stands. */
};

/** The outcome of a freeze. */
struct attach_freeze {
	struct attach_frozen_thread *threads;
	size_t thread_count;
	size_t stood; /**< Threads that were stopped. */
	size_t woken; /**< Threads that ran meanwhile, as they woke or did not stand in time. */
	uint64_t pause_ns; /**< From when the first thread stood to the release of the last; 0 where
				none had to be stopped. */
	bool is_full;	   /**< There were more threads than can be held: they ran on. */
	bool is_truncated; /**< Time was over, or the hold ended early: not all was copied. */
	size_t unread;	   /**< Ranges of which parts could not be read: unmapped meanwhile. */
};

/**
 * Stop all running threads of a process, copy memory, let all go.
 *
 * Threads that are blocked are not interrupted, which would end their system calls with EINTR; they
 * may wake, which is noticed: they are stopped then, and counted. What is held is held by a process
 * of its own that a timer ends at @p max_pause_ns, and our end ends it too: the kernel then lets
 * all threads run, with the signals that came meanwhile. So nothing that happens to us or to the
 * copying makes the pause longer. A thread in a group stop stays in it.
 * @param max_pause_ns  From when the first thread stands; at least 1 ms. Four fifths are for
 * copying.
 * @param copy     Its ranges are read, those asked for first first; anew each time.
 * @param ret_hold Set on success; release with attach_freeze_deinit(). On failure its pause alone
 * is set, as threads may have stood nevertheless.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_BUSY, FAILURE_TIMEOUT (the time was over before
 * the threads stood), FAILURE_NO_MEMORY, FAILURE_SYSTEM.
 * @return 0, also where the copy is cut; or -1.
 * Source: ptrace(2); setitimer(2); Linux 6.1, kernel/ptrace.c, exit_ptrace(), __ptrace_unlink().
 */
int attach_freeze(struct attach_process *process, uint64_t max_pause_ns, struct attach_copy *copy,
		  struct attach_freeze *ret_hold, struct failure *why);
void attach_freeze_deinit(struct attach_freeze *freeze);

#endif
