/* SPDX-License-Identifier: MIT */
/* Private to luastate: the areas of machine code of each VM. */
#ifndef LUASTATE_TRACE_CODE_AREAS_H
#define LUASTATE_TRACE_CODE_AREAS_H

#include "luastate/state/state.h"

enum areas_answer {
	AREAS_UNKNOWN, /**< Nobody knows which areas there were. */
	AREAS_HAVE,
	AREAS_LACK, /**< It is another compiler's code, also where an area was before. */
};

/**
 * Whether one of a VM's areas of machine code had @p pc when the thread was stopped or copied.
 *
 * Stopped window: no. Areas are remembered: reads one link for each that is new, which are steps of
 * trace_charge(). Source: LuaJIT v2.1 src/lj_mcode.c (mcode_allocarea, lj_mcode_free).
 * @param reader What the stop copied, and behind it the process as it is now.
 */
enum areas_answer areas_have(struct luastate *state, const struct luastate_vm *vm,
			     const struct attach_reader *reader, uint64_t pc);

/** The end of what is copied of jit_State from its member parent on: with the number of the last
 *  exit and what tells the areas, as far as these are near behind it. */
uint32_t areas_noted_end(const struct luastate_layout *layout);

void areas_free_all(struct luastate *state);

#endif
