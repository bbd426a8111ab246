/* SPDX-License-Identifier: MIT */
/* To which VM do a coroutine and registers belong? Private to luastate. */
#ifndef LUASTATE_VM_VM_INTERNAL_H
#define LUASTATE_VM_VM_INTERNAL_H

#include "luastate/vm.h"

enum {
	/* The first bytes of a main coroutine, up to the end of its reference to the global state.
	 */
	STATE_MAIN_HEAD = 24,
};

/**
 * luastate_vm_of() for coroutines in a sample, where many may belong to no VM. After some unknown
 * ones, further unknown ones are refused with FAILURE_LIMIT.
 */
const struct luastate_vm *state_sample_vm_of(struct luastate *state,
					     const struct attach_reader *reader, uint64_t L,
					     struct failure *why);

/**
 * The known VM of VM code with these registers, interpreted or compiled; NULL if they show none.
 * Source: as luastate_is_in_trace().
 */
const struct luastate_vm *state_vm_in_register(const struct luastate *state,
					       const struct attach_registers *regs);

/** The global state to which a coroutine refers under a layout; 0 if it is no coroutine. */
uint64_t state_global_of(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t L);

#endif
