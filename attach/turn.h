/* SPDX-License-Identifier: MIT */
/* Private to attach: whether a thread ran at a tick, or waited for a processor; see turn.c. */
#ifndef ATTACH_TURN_H
#define ATTACH_TURN_H

#include "attach/attach.h"

/** A thread is about to be interrupted: note what the scheduler has counted until now. */
void turn_begin(struct attach_thread *thread);

/** It did not stand at once, and is left under the interrupt. */
void turn_postpone(struct attach_thread *thread);

/**
 * It stands. Stopped window: yes, one small read of /proc, unless it has stood at once.
 * @param ret_waited_ns How long it has waited for a processor since the interrupt, at most.
 * @return Whether it waited already when the tick came.
 */
bool turn_has_waited(struct attach_thread *thread, uint64_t stood_ns, uint64_t *ret_waited_ns);

void turn_end(struct attach_thread *thread);

#endif
