/* SPDX-License-Identifier: MIT */
/* What do a VM's collector and compiler do at this moment? */
#ifndef LUASTATE_VM_STATS_H
#define LUASTATE_VM_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/vm.h"

/** What a VM's collector and compiler do at this moment. */
struct luastate_vm_stats {
	uint64_t heap_bytes, threshold_bytes; /**< In use; at which the collector works on. */
	unsigned gc_phase;		      /**< enum luastate_gc_phase, or none of it. */
	uint32_t pause, step_multiplier;      /**< In percent, as collectgarbage() takes them. */
	bool has_allocated;		      /**< The build counts what is allocated. */
	uint64_t allocated_bytes;	      /**< Since the VM began. */
	bool has_traces;		      /**< What follows was read. */
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; machine code areas without what is free. */
	uint64_t created;	      /**< Traces seen to be made since the first look: at least. */
	bool is_counted;	      /**< The build counts aborts. */
	uint64_t aborted; /**< Counted since the VM began, or else seen since the first look. */
};

/** What the last look at a VM saw, to tell what has changed since. */
struct luastate_stats_delta;

/** @return NULL when out of memory. */
struct luastate_stats_delta *luastate_stats_delta_create(void);
void luastate_stats_delta_destroy(struct luastate_stats_delta *delta);

/**
 * Read the stats of a VM from the live process: some ten short reads, and one of the table of
 * traces. Stopped window: no; what is read may change meanwhile, so the numbers are of about the
 * same moment.
 * @param G Of a known VM.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_INVALID, or a read's failure.
 * @return 0 or -1.
 * Source: LuaJIT v2.1 src/lj_obj.h (GCState), src/lj_jit.h (jit_State).
 */
int luastate_read_vm_stats(const struct luastate *state, const struct attach_reader *reader,
			   uint64_t G, struct luastate_stats_delta *delta,
			   struct luastate_vm_stats *ret_stats, struct failure *why);

#endif
