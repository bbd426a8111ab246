/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does a recording end, and what happens to its outputs? */
#ifndef DAEMON_RECORD_ENDING_H
#define DAEMON_RECORD_ENDING_H

#include "daemon/recorder/recorder.h"

/** After the loop: say whether the end that it set means that there was nothing to record. */
void recorder_judge_end(struct recorder *recorder);

/**
 * Send the notes, wait for the writer, and report an output that failed. If nothing was recorded,
 * the writer ends without a profile.
 */
void recorder_finish_outputs(struct recorder *recorder);

/** Close all outputs. Remove those that failed, and unused ones if this recording created them. */
void recorder_close_outputs(struct recorder *recorder);

#endif
