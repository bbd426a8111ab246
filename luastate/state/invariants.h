/* SPDX-License-Identifier: MIT */
/* Which invariants does a live VM satisfy? Private to luastate. */
#ifndef LUASTATE_STATE_INVARIANTS_H
#define LUASTATE_STATE_INVARIANTS_H

#include "luastate/explain.h"

enum {
	/* LJ_MIN_STRTAB: a string table never gets smaller. */
	STATE_STRTAB_MASK_MIN = 255,
	/* Slots of a Lua stack. LUAI_MAXSTACK is half as many. */
	STATE_STACK_SLOTS_MAX = 1 << 17,
	/* Numbers of a trace's instructions start here; constants are below (REF_BIAS, REF_BASE).
	 */
	TRACE_REF_BASE = 0x8000,
	/* Types of a trace's link, LJ_TRLINK_*. Source: LuaJIT v2.1 src/lj_jit.h. */
	TRACE_LINK_STITCH = 8, /* the last type */
};

/**
 * Whether the global_State at @p G belongs to a live VM, under a layout.
 * @param visit Called for each invariant, also after a failed one; NULL: stop at the first failure.
 */
bool state_check_vm(const struct luastate *state, const struct luastate_layout *layout,
		    const struct attach_reader *reader, uint64_t G,
		    luastate_invariant_visitor *visit, void *context);

/** Whether bytes are trace @p number under a layout. */
bool state_trace_fits(const struct luastate_layout *layout, const struct attach_reader *reader,
		      const uint8_t *trace, uint64_t address, uint32_t number);

/** Whether GCtrace and jit_State fit a VM's traces; true if it has no traces. */
bool state_check_trace(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G);

#endif
