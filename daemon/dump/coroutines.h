/* SPDX-License-Identifier: MIT */
/* Private to daemon: which coroutines are in a copy or a core file? */
#ifndef DAEMON_DUMP_COROUTINES_H
#define DAEMON_DUMP_COROUTINES_H

#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "luastate/coroutines.h"
#include "luastate/variables.h"

/** Memory and registers to read coroutines from. */
struct coroutines_source {
	/** `stopped` contains the coroutines and their stacks. */
	const struct luastate_memory *memory;
	/** The consistent snapshot alone, for the stacks of threads. */
	const struct attach_reader *snapshot;
	const struct luastate_position *positions; /* of all known threads */
	size_t position_count;
	bool has_all_positions;
	const struct attach_registers *registers; /* of threads that are stopped, or crashed */
	size_t register_count;
	uint64_t end_ns;			      /* by clock_now_ns() */
	const struct luastate_values_options *values; /* NULL: no variables are read */
	const struct luastate_memory *heap;	      /* memory for the variables */
};

/** Get the position of a thread's native stack. Its mapping may have grown since the maps were
 * read. */
struct luastate_position coroutines_position(const struct daemon_target *target, uint64_t sp,
					     uint64_t pc, int64_t syscall);

/**
 * Read the coroutines of all VMs that the target knows. Sets the VMs, the stacks and is_truncated
 * of @p ret_coroutines; the caller sets the rest.
 * @return 0, or -1 with FAILURE_NO_MEMORY. In both cases the caller releases @p ret_coroutines.
 */
int coroutines_read(struct daemon_target *target, const struct coroutines_source *source,
		    struct daemon_coroutines *ret_coroutines, struct failure *why);

#endif
