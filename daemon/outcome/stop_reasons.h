/* SPDX-License-Identifier: MIT */
/* Private to daemon: threads that are stopped although the kernel copies others. */
#ifndef DAEMON_OUTCOME_STOP_REASONS_H
#define DAEMON_OUTCOME_STOP_REASONS_H

#include "daemon/outcome/outcomes.h"

/** Whether threads may be stopped at all: with --capture=kernel they never are. */
bool stops_are_allowed(const struct recorder *recorder);

/** The thread is stopped from now on, for this reason: stops_note() counts for it. */
void stops_begin(struct sampled_thread *data, enum daemon_reason reason);

/**
 * Count stops of a thread, and the samples from them. Where all threads are stopped, as the kernel
 * copies none from the beginning, nothing is counted.
 * @param samples Ticks that the samples stand for.
 */
void stops_note(struct recorder_target *of, const struct attach_thread *thread,
		struct sampled_thread *data, uint64_t stops, uint64_t samples);

#endif
