/* SPDX-License-Identifier: MIT */
/* Private to luastate: known traces by their machine code. */
#ifndef LUASTATE_TRACE_TRACE_INDEX_H
#define LUASTATE_TRACE_TRACE_INDEX_H

#include "luastate/trace/trace.h"

/** Memory for the index, unless there is some. @return false where there is none. */
bool trace_index_init(struct luastate *state);

/** Add a trace. Those whose machine code lay there are no longer in the index. */
void trace_index_add(struct luastate *state, struct trace *trace);
void trace_index_remove(struct luastate *state, struct trace *trace);

/** The number of the known trace with machine code at @p pc, 0 for none. Reads nothing. */
uint32_t trace_number_at(const struct luastate *state, uint64_t G, uint64_t pc);

/** The same of all VMs: the global state of the trace's. */
uint64_t trace_vm_at(const struct luastate *state, uint64_t pc);

#endif
