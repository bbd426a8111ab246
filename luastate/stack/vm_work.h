/* SPDX-License-Identifier: MIT */
/* Private to luastate: what the VM does for a sample's frames. */
#ifndef LUASTATE_STACK_VM_WORK_H
#define LUASTATE_STACK_VM_WORK_H

#include "luastate/stack/walk.h"

/** Set the chain's activity, once the stacks are walked. */
void walk_read_vm_work(struct walk *walk);

#endif
