/* SPDX-License-Identifier: MIT */
/* Private to luastate: which layout an interpreter has. */
#ifndef LUASTATE_VM_CHOOSE_LAYOUT_H
#define LUASTATE_VM_CHOOSE_LAYOUT_H

#include "luastate/state/state.h"

/** Keep a layout that prototypes and predictions may refer to until the state is reset. @param
 * layout May be NULL. @return whether there is room for it. */
bool state_retire_layout(struct luastate *state, struct luastate_layout *layout);

/** Whether an interpreter may have this layout, by what is known of it so far. */
bool state_may_have(const struct state_interpreter *interpreter,
		    const struct luastate_layout *layout);

/** Whether the row that a VM passes holds for all else that its interpreter and the VM show; else
 *  the interpreter may not have it any more. Stopped window: no. */
bool state_row_holds(struct luastate *state, struct state_interpreter *interpreter,
		     const struct luastate_layout *row, const struct attach_reader *reader,
		     uint64_t L);

/** A VM has shown that this is the interpreter's layout. */
void state_set_layout(struct luastate *state, struct state_interpreter *interpreter,
		      const struct luastate_layout *layout);

/** A VM runs compiled code: what its layout says of that is compared with its traces once, and what
 *  was not known may be seen. Costs next to nothing afterwards. Stopped window: no. */
void state_note_compiled(struct luastate *state, const struct attach_reader *reader,
			 const struct luastate_vm *vm);

/** Choose a VM's layout anew: it now shows what tells it from others. */
void state_reconsider_layout(struct luastate *state, const struct attach_reader *reader,
			     uint64_t G);

#endif
