/* SPDX-License-Identifier: MIT */
/* Private to daemon: which threads are stopped although the kernel copies others? */
#ifndef DAEMON_OUTCOME_STOP_REASONS_H
#define DAEMON_OUTCOME_STOP_REASONS_H

#include "daemon/outcome/outcomes.h"

/** Whether threads may be stopped at all; with --capture=kernel they never are. */
bool stops_are_allowed(const struct recorder *recorder);

/** From now on the thread is stopped for this reason: stops_note() counts under it. */
void stops_begin(struct sampled_thread *data, enum daemon_reason reason);

/**
 * Count stops of a thread and the samples from them. Counts nothing if all threads are stopped
 * because the kernel copied none from the beginning.
 * @param samples Ticks that the samples represent.
 */
void stops_note(struct recorder_target *of, const struct attach_thread *thread,
		struct sampled_thread *data, uint64_t stops, uint64_t samples);

#endif
