/* SPDX-License-Identifier: MIT */
/* Names of the system calls that threads wait in. */
#ifndef CLI_CALLS_H
#define CLI_CALLS_H

#include <stdint.h>

/** @return NULL for a number that is none, or of a call that nobody waits in. */
const char *calls_name(int64_t number);

#endif
