/* SPDX-License-Identifier: MIT */
/* What are a VM's collector and compiler doing now? */
#ifndef LUASTATE_VM_STATS_H
#define LUASTATE_VM_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/vm.h"

/** State of a VM's collector and compiler. */
struct luastate_vm_stats {
	uint64_t heap_bytes, threshold_bytes; /**< In use; where the collector continues. */
	unsigned gc_phase;		      /**< enum luastate_gc_phase, or a value outside it. */
	uint32_t pause, step_multiplier;      /**< In percent, as for collectgarbage(). */
	bool has_allocated;		      /**< The build counts allocations. */
	uint64_t allocated_bytes;	      /**< Since the VM's start. */
	bool has_traces;		      /**< The members below were read. */
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; used bytes of machine code areas. */
	uint64_t created;	      /**< New traces seen since the first probe; a lower bound. */
	bool is_counted;	      /**< The build counts aborts. */
	uint64_t aborted; /**< Since the VM's start if is_counted, else seen since the first probe.
			   */
};

/** What the last probe of a VM saw, to show what changed since then. */
struct luastate_stats_delta;

/** @return NULL when out of memory. */
struct luastate_stats_delta *luastate_stats_delta_create(void);
void luastate_stats_delta_destroy(struct luastate_stats_delta *delta);

/**
 * Read the stats of a VM from the live process: some ten short reads, and one of the table of
 * traces. Stopped window: no. The memory may change meanwhile, so the numbers are not a consistent
 * snapshot.
 * @param G The global_State of a known VM.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_INVALID, or a read's failure.
 * @return 0 or -1.
 * Source: LuaJIT v2.1 src/lj_obj.h (GCState), src/lj_jit.h (jit_State).
 */
int luastate_read_vm_stats(const struct luastate *state, const struct attach_reader *reader,
			   uint64_t G, struct luastate_stats_delta *delta,
			   struct luastate_vm_stats *ret_stats, struct failure *why);

#endif
