/* SPDX-License-Identifier: MIT */
/* Private to luastate: which areas of machine code does each VM have? */
#ifndef LUASTATE_TRACE_CODE_AREAS_H
#define LUASTATE_TRACE_CODE_AREAS_H

#include "luastate/state/state.h"

enum areas_answer {
	AREAS_UNKNOWN, /**< Nobody knows which areas the VM had. */
	AREAS_HAVE,
	AREAS_LACK, /**< The code is another compiler's, even if an area was there before. */
};

/**
 * Whether one of a VM's areas of machine code contained @p pc when the thread was stopped or
 * copied.
 *
 * Stopped window: no. Areas are remembered. Each new area costs a read of one link, which counts as
 * a step of trace_charge(). Source: LuaJIT v2.1 src/lj_mcode.c (mcode_allocarea, lj_mcode_free).
 * @param reader What the stop copied, then the process as it is now.
 */
enum areas_answer areas_have(struct luastate *state, const struct luastate_vm *vm,
			     const struct attach_reader *reader, uint64_t pc);

/** End of the part of jit_State to copy, which begins at its member `parent`. The part includes
 * the number of the last exit, and the members about areas if they follow closely. */
uint32_t areas_noted_end(const struct luastate_layout *layout);

void areas_free_all(struct luastate *state);

#endif
