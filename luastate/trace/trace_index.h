/* SPDX-License-Identifier: MIT */
/* Private to luastate: which known trace has machine code at an address? */
#ifndef LUASTATE_TRACE_TRACE_INDEX_H
#define LUASTATE_TRACE_TRACE_INDEX_H

#include "luastate/trace/trace.h"

/** Allocate the index if needed. @return false when out of memory. */
bool trace_index_init(struct luastate *state);

/** Add a trace. Removes traces whose machine code overlaps from the index. */
void trace_index_add(struct luastate *state, struct trace *trace);
void trace_index_remove(struct luastate *state, struct trace *trace);

/** The number of the known trace with machine code at @p pc, 0 if there is none. Reads nothing. */
uint32_t trace_number_at(const struct luastate *state, uint64_t G, uint64_t pc);

/** The same for all VMs: the global state of the trace's VM. */
uint64_t trace_vm_at(const struct luastate *state, uint64_t pc);

#endif
