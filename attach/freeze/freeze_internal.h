/* SPDX-License-Identifier: MIT */
/* Private to attach: what do a freezer and its parent share? */
#ifndef ATTACH_FREEZE_FREEZE_INTERNAL_H
#define ATTACH_FREEZE_FREEZE_INTERNAL_H

#include "attach/freeze.h"
#include "attach/thread.h"

enum {
	/* Threads to stop at most. Further threads run, and the result says so. */
	FREEZE_THREADS_MAX = 4096,
};

/** One thread, as the freezer sees it. */
struct freeze_thread {
	struct attach_frozen_thread seen;
	int status;	/* of its stop, from waitpid */
	bool is_seized; /* by us; until seen.is_stopped, it has not answered */
	bool is_ended;
	bool is_refused; /* not seized so far */
	uint64_t runs;	 /* counted before it was first seen asleep */
};

/** Memory of both processes. The freezer writes it until it sends FREEZE_DONE. */
struct freeze_shared {
	volatile uint64_t begin_ns;   /* before the first thread stopped; 0: none has */
	volatile uint64_t release_ns; /* when the freezer let the last thread go; 0: it did not */
	struct failure why;	      /* for the first thread that we could not seize */
	size_t count;
	bool is_incomplete; /* the process has further threads */
	bool is_full;	    /* because there are more than FREEZE_THREADS_MAX */
	struct freeze_thread threads[FREEZE_THREADS_MAX];
};

/** Messages of one byte between freezer and parent. */
enum { FREEZE_STOPPED = 'S', FREEZE_DONE = 'D' };

/**
 * Run the freezer, in a process of its own: stop the running threads, send FREEZE_STOPPED, wait for
 * FREEZE_DONE, let the threads go, send FREEZE_DONE, exit. SIGALRM ends it at @p max_pause_ns after
 * the first thread stops. It also ends with its parent.
 * @param end One end of a socket pair.
 */
_Noreturn void freezer_run(struct attach_threads *threads, pid_t parent, uint64_t max_pause_ns,
			   int end, struct freeze_shared *shared);

#endif
