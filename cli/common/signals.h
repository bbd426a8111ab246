/* SPDX-License-Identifier: MIT */
/* What commands that sample until they are stopped need of their process. */
#ifndef CLI_COMMON_SIGNALS_H
#define CLI_COMMON_SIGNALS_H

#include <signal.h>

/** Set once there is the wish to stop. */
extern volatile sig_atomic_t stop_requested;

/**
 * Take SIGINT, SIGTERM and SIGHUP, those that are not ignored, for the wish to stop, and leave
 * SIGPIPE and SIGXFSZ to the calls that they are about.
 */
void signals_catch(void);

/** Take as many descriptors as are allowed: one a thread of the target. Children inherit it. */
void signals_raise_descriptor_limit(void);

#endif
