/* SPDX-License-Identifier: MIT */
/*
 * Private to attach: threads that have not answered our interrupt yet.
 *
 * Each of them stands from when it gets a processor until we come to it, and whatever we do
 * meanwhile may take long. And one that has ended stays until we reap it, for which an exec in its
 * process waits, while it lets nobody seize another thread. So a timer looks after them all: one
 * that has stood for a while is let go, one that has ended is reaped.
 * Source: Linux 6.1, fs/exec.c, de_thread(); kernel/ptrace.c, ptrace_attach(), cred_guard_mutex.
 */
#ifndef ATTACH_THREAD_PENDING_STOPS_H
#define ATTACH_THREAD_PENDING_STOPS_H

#include <stdbool.h>
#include <sys/types.h>

/** The fate of a thread with a pending stop, by others than us. */
enum pending_stop_fate { PENDING_STOP_STILL, PENDING_STOP_LET_GO, PENDING_STOP_ENDED };

/** Look after a thread from now on; after no more than 64 at one time. */
void pending_stops_add(pid_t tid);

/** @return its fate; PENDING_STOP_STILL if it is not looked after. */
enum pending_stop_fate pending_stop_poll(pid_t tid);

/** It is looked after by others. @return its fate until now. */
enum pending_stop_fate pending_stops_remove(pid_t tid);

/** Undo of a seize: a signal for which the thread stands is delivered. @return 0, or -1 where it
 * was killed while it stood, and has to be reaped. May be called by a signal handler. */
int pending_stop_let_go(pid_t tid, int status);

#endif
