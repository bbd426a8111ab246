/* SPDX-License-Identifier: MIT */
/*
 * Private to attach: which threads have not answered our interrupt yet?
 *
 * Such a thread stops as soon as it gets a processor. It then stays stopped until we continue with
 * it, and our other work may take long. A thread that has ended stays until we reap it. An exec in
 * its process waits for that, and meanwhile nobody can seize another thread of the process. So a
 * timer polls them all: it lets a thread go that was stopped for a while, and reaps one that has
 * ended.
 * Source: Linux 6.1, fs/exec.c, de_thread(); kernel/ptrace.c, ptrace_attach(), cred_guard_mutex.
 */
#ifndef ATTACH_THREAD_PENDING_STOPS_H
#define ATTACH_THREAD_PENDING_STOPS_H

#include <stdbool.h>
#include <sys/types.h>

/** What the timer did to a thread with a pending stop. */
enum pending_stop_fate { PENDING_STOP_STILL, PENDING_STOP_LET_GO, PENDING_STOP_ENDED };

/** Poll a thread from now on; at most 64 at one time. */
void pending_stops_add(pid_t tid);

/** @return its fate; PENDING_STOP_STILL if the timer does not poll it. */
enum pending_stop_fate pending_stop_poll(pid_t tid);

/**
 * Stop polling a thread; the caller handles it again.
 * @return its fate until now.
 */
enum pending_stop_fate pending_stops_remove(pid_t tid);

/**
 * Undo a seize, and deliver the signal for which the thread is stopped. Signal handlers may call
 * this.
 * @return 0; or -1 if the thread was killed while stopped, and must be reaped.
 */
int pending_stop_let_go(pid_t tid, int status);

#endif
