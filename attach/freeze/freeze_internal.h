/* SPDX-License-Identifier: MIT */
/* Private to attach: what a holder and its parent share. */
#ifndef ATTACH_FREEZE_FREEZE_INTERNAL_H
#define ATTACH_FREEZE_FREEZE_INTERNAL_H

#include "attach/freeze.h"
#include "attach/thread.h"

enum {
	/* Threads that are held; those beyond run on, which the result tells. */
	FREEZE_THREADS_MAX = 4096,
};

/** One thread, as the holder sees it. */
struct freeze_thread {
	struct attach_frozen_thread seen;
	int status;	/* of its stop, by waitpid */
	bool is_seized; /* by us; not answered yet unless it stands */
	bool is_ended;
	bool is_refused; /* could not be seized so far */
	uint64_t runs;	 /* counted before it was seen asleep first */
};

/** In memory that both see; written by the holder until it says that it is done. */
struct freeze_shared {
	volatile uint64_t begin_ns;   /* when no thread stood yet; 0: none has stood */
	volatile uint64_t release_ns; /* when the last thread was let go; 0: not by the holder */
	struct failure why;	      /* of the first thread that could not be seized */
	size_t count;
	bool is_incomplete; /* there are more threads than these */
	bool is_full;	    /* as these are as many as can be held */
	struct freeze_thread threads[FREEZE_THREADS_MAX];
};

/** What holder and parent say to each other: one byte. */
enum { FREEZE_STANDS = 'S', FREEZE_DONE = 'D' };

/**
 * The life of a holder, in a process of its own: stop what runs, say FREEZE_STANDS, wait for
 * FREEZE_DONE, let go, say FREEZE_DONE, end. Ended by SIGALRM at @p max_pause_ns after the first
 * thread stands, and with its parent.
 * @param end  Of a pair of sockets.
 */
_Noreturn void freezer_run(struct attach_threads *threads, pid_t parent, uint64_t max_pause_ns,
			   int end, struct freeze_shared *shared);

#endif
