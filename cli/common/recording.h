/* SPDX-License-Identifier: MIT */
/* What do the commands that read processes share? */
#ifndef CLI_COMMON_RECORDING_H
#define CLI_COMMON_RECORDING_H

#include "cli/common/options.h"
#include "daemon/record.h"

/** Limits of --duration; more than the maximum is pointless. */
#define DURATION_MIN_S 1e-9
#define DURATION_MAX_S 1e9

/** Refusal of other options that take a time. */
#define RECORDING_NO_TIME "not a time, such as 500ms, 30s, 5m or 1h"

/** Limit of --frequency. */
enum { RATE_MAX_HZ = 10000 };

/** The ways to take samples. */
extern const struct options_word recording_captures[];

/** The exit code for an end. */
int recording_exit_code(enum daemon_end end);

#endif
