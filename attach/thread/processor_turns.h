/* SPDX-License-Identifier: MIT */
/* Private to attach: did a thread run at a tick, or did it wait for a processor? */
#ifndef ATTACH_THREAD_PROCESSOR_TURNS_H
#define ATTACH_THREAD_PROCESSOR_TURNS_H

#include "attach/thread.h"

/** Whether the thread runs or waits on our own processor. Stopped window: no. */
bool turn_shares_processor(const struct attach_thread *thread);

/** Call before an interrupt: read the scheduler's counters of the thread. */
void turn_begin(struct attach_thread *thread);

/** Call if the thread did not stop at once and stays under the interrupt. */
void turn_postpone(struct attach_thread *thread);

/**
 * Call when the thread has stopped; thread->tick_ns is the tick. Stopped window: yes, one small
 * read of /proc, unless the thread stopped at once.
 * @param last_stop_ns When it stopped, if it did so at once: CLOCK_MONOTONIC.
 * @param ret_waited_ns How long it waited for a processor since the interrupt, at most; 0: unknown.
 * @return Whether it already waited at the tick; false if unknown.
 */
bool turn_has_waited(struct attach_thread *thread, uint64_t last_stop_ns, uint64_t *ret_waited_ns);

/** Close the file that the thread's entry keeps open. */
void turn_end(struct attach_thread *thread);

#endif
