/* SPDX-License-Identifier: MIT */
/* Private to attach: whether a thread ran at a tick, or waited for a processor; see
 * processor_turns.c. */
#ifndef ATTACH_THREAD_PROCESSOR_TURNS_H
#define ATTACH_THREAD_PROCESSOR_TURNS_H

#include "attach/thread.h"

/** Whether the thread runs, or waits, on the processor that we run on. Stopped window: no. */
bool turn_shares_processor(const struct attach_thread *thread);

/** Call before an interrupt: note what the scheduler has counted for the thread until now. */
void turn_begin(struct attach_thread *thread);

/** Call when the thread did not stand at once and is left under the interrupt. */
void turn_postpone(struct attach_thread *thread);

/**
 * Call when the thread stands; thread->tick_ns is the tick. Stopped window: yes, one small read of
 * /proc, unless it has stood at once.
 * @param stood_ns When it stood, if at once: CLOCK_MONOTONIC.
 * @param ret_waited_ns How long it waited for a processor since the interrupt, at most; 0 if that
 * is not known.
 * @return Whether it already waited when the tick came; false if that is not known.
 */
bool turn_has_waited(struct attach_thread *thread, uint64_t stood_ns, uint64_t *ret_waited_ns);

/** Close what was kept open for the thread. */
void turn_end(struct attach_thread *thread);

#endif
