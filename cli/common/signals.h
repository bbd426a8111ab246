/* SPDX-License-Identifier: MIT */
/* Which signals and limits does a command set that samples until it is stopped? */
#ifndef CLI_COMMON_SIGNALS_H
#define CLI_COMMON_SIGNALS_H

#include <signal.h>

/** Set when the command shall stop. */
extern volatile sig_atomic_t stop_requested;

/** Set stop_requested on SIGINT, SIGTERM and SIGHUP, unless they are ignored. Ignore SIGPIPE and
 * SIGXFSZ, because the failing calls report them. */
void signals_catch(void);

/** Raise the limit of descriptors to its maximum: each thread of the target needs one. Children
 * inherit the limit. */
void signals_raise_descriptor_limit(void);

#endif
