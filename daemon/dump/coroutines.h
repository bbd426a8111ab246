/* SPDX-License-Identifier: MIT */
/* Private to daemon: coroutines of a copy, or of a core file. */
#ifndef DAEMON_DUMP_COROUTINES_H
#define DAEMON_DUMP_COROUTINES_H

#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "luastate/coroutines.h"
#include "luastate/variables.h"

/** From what coroutines are read. */
struct coroutines_source {
	/** `stopped` is where coroutines and stacks are. */
	const struct luastate_memory *memory;
	/** What alone is of one moment, for the stacks of threads. */
	const struct attach_reader *snapshot;
	const struct luastate_position *positions; /* of all threads known */
	size_t position_count;
	bool has_all_positions;
	const struct attach_registers *registers; /* of threads that stand, or crashed */
	size_t register_count;
	uint64_t end_ns;			      /* by clock_now_ns() */
	const struct luastate_values_options *values; /* NULL: no variables are read */
	const struct luastate_memory *heap;	      /* where they are read */
};

/** Where a thread's native stack is. Its mapping may have grown since the maps were read. */
struct luastate_position coroutines_position(const struct daemon_target *target, uint64_t sp,
					     uint64_t pc, int64_t syscall);

/**
 * Read the coroutines of all VMs that the target knows. Sets the VMs and the stacks of @p
 * ret_coroutines, and whether they are cut; the rest is the caller's.
 * @return 0, or -1 with FAILURE_NO_MEMORY: what is there already stays the caller's to release.
 */
int coroutines_read(struct daemon_target *target, const struct coroutines_source *source,
		    struct daemon_coroutines *ret_coroutines, struct failure *why);

#endif
