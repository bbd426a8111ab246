/* SPDX-License-Identifier: MIT */
/* Private to luastate: which VM work do a sample's frames trigger? */
#ifndef LUASTATE_STACK_VM_WORK_H
#define LUASTATE_STACK_VM_WORK_H

#include "luastate/stack/walk.h"

/** Set the chain's VM work. Call this after the stacks are walked. */
void walk_read_vm_work(struct walk *walk);

#endif
