/* SPDX-License-Identifier: MIT */
/* Private to luastate: what holds of a live VM. */
#ifndef LUASTATE_STATE_INVARIANTS_H
#define LUASTATE_STATE_INVARIANTS_H

#include "luastate/explain.h"

enum {
	/* Instructions of traces are numbered from here, constants below (REF_BIAS, REF_BASE). */
	TRACE_REF_BASE = 0x8000,
	/* Where a trace goes at its end, LJ_TRLINK_*. Source: LuaJIT v2.1 src/lj_jit.h. */
	TRACE_LINK_STITCH = 8, /* the last of them */
};

/**
 * Whether the global_State at @p G, under a layout, is that of a live VM.
 * @param visit Called for each invariant, also behind the first that fails; NULL: stop there.
 */
bool state_check_vm(const struct luastate *state, const struct luastate_layout *layout,
		    const struct attach_reader *reader, uint64_t G,
		    luastate_invariant_visitor *visit, void *context);

/** Whether the bytes of a trace are those of trace @p number under a layout. */
bool state_trace_fits(const struct luastate_layout *layout, const struct attach_reader *reader,
		      const uint8_t *trace, uint64_t address, uint32_t number);

/** Whether GCtrace and jit_State fit, by a trace of the VM; true where it has none yet. */
bool state_check_trace(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G);

#endif
