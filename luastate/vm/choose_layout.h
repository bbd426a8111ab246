/* SPDX-License-Identifier: MIT */
/* Which layout does an interpreter have? Private to luastate. */
#ifndef LUASTATE_VM_CHOOSE_LAYOUT_H
#define LUASTATE_VM_CHOOSE_LAYOUT_H

#include "luastate/state/state.h"

/** Whether an interpreter may have this layout, as far as is known. */
bool state_may_have(const struct state_interpreter *interpreter,
		    const struct luastate_layout *layout);

/**
 * Whether a row that satisfies a VM's invariants agrees with all other evidence of the interpreter
 * and the VM. If not, the interpreter never gets this row again. Stopped window: no.
 */
bool state_row_holds(struct luastate *state, struct state_interpreter *interpreter,
		     const struct luastate_layout *row, const struct attach_reader *reader,
		     uint64_t L);

/** Set the layout that a VM has confirmed for an interpreter. */
void state_set_layout(struct luastate *state, struct state_interpreter *interpreter,
		      const struct luastate_layout *layout);

/**
 * Note that a VM runs compiled code. Its layout is compared with its traces once, and fields that
 * were unknown may become known. Later calls cost next to nothing. Stopped window: no.
 */
void state_note_compiled(struct luastate *state, const struct attach_reader *reader,
			 const struct luastate_vm *vm);

/** Choose a VM's layout again, because new evidence distinguishes it from others. */
void state_reconsider_layout(struct luastate *state, const struct attach_reader *reader,
			     uint64_t G);

#endif
