/* SPDX-License-Identifier: MIT */
/* Private to daemon: stacks in the making, of a process or of a core file. */
#ifndef DAEMON_STACKS_H
#define DAEMON_STACKS_H

#include "daemon/target.h"

/**
 * List the VM of a stack, once.
 * @param G Its global_State, as in struct daemon_stack.
 * @return 0, or -1 without memory.
 */
int stacks_add_vm(struct daemon_stacks *stacks, struct daemon_target *target, uint64_t G);

#endif
