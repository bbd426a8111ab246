/* SPDX-License-Identifier: MIT */
/* Private to luastate: the VM of a coroutine, and of registers. */
#ifndef LUASTATE_VM_VM_INTERNAL_H
#define LUASTATE_VM_VM_INTERNAL_H

#include "luastate/vm.h"

enum {
	/* The first bytes of a main coroutine, up to behind its reference to the global state. */
	STATE_MAIN_HEAD = 24,
};

/** luastate_vm_of() for what a sample shows, which may be many coroutines of no VM: after some
 * whose VM was not known others are refused, with FAILURE_LIMIT, unless theirs is. */
const struct luastate_vm *state_sample_vm_of(struct luastate *state,
					     const struct attach_reader *reader, uint64_t L,
					     struct failure *why);

/** The known VM that VM code with these registers is of, interpreted or compiled; NULL if they hold
 * none. Source: as luastate_is_in_trace(). */
const struct luastate_vm *state_vm_in_register(const struct luastate *state,
					       const struct attach_registers *regs);

/** The global state that a coroutine refers to under a layout, 0 if it is no coroutine. */
uint64_t state_global_of(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t L);

#endif
