/* SPDX-License-Identifier: MIT */
/* What commands that look into processes have in common. */
#ifndef CLI_COMMON_RECORDING_H
#define CLI_COMMON_RECORDING_H

#include "cli/common/options.h"
#include "daemon/record.h"

/** Of --duration; longer is for ever. */
#define DURATION_MIN_S 1e-9
#define DURATION_MAX_S 1e9

/** Of --frequency. */
enum { RATE_MAX_HZ = 10000 };

/** The ways to take samples. */
extern const struct options_word recording_captures[];

/** The exit code of how something ended. */
int recording_exit_code(enum daemon_end end);

#endif
