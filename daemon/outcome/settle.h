/* SPDX-License-Identifier: MIT */
/* Private to daemon: how do pending stops of threads end? */
#ifndef DAEMON_OUTCOME_SETTLE_H
#define DAEMON_OUTCOME_SETTLE_H

#include "daemon/recorder/recorder.h"

/**
 * Wait until no thread of the process has a pending stop.
 * @return Whether none has.
 */
bool recorder_settle(struct recorder_target *of);

/** Do this for all processes, before anything that may take longer than a sample. */
void recorder_settle_all(struct recorder *recorder);

#endif
