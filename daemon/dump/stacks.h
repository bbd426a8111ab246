/* SPDX-License-Identifier: MIT */
/* Private to daemon: stacks in the making, of a process or of a core file. */
#ifndef DAEMON_DUMP_STACKS_H
#define DAEMON_DUMP_STACKS_H

#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "daemon/snapshot/snapshot.h"

enum {
	/* Of all threads together; a stack has 6145 at most. */
	STACKS_FRAMES_MAX = 1 << 20,
};

/**
 * List the VM of a stack, once.
 * @param G Its global_State, as in struct daemon_stack.
 * @return 0, or -1 without memory.
 */
int stacks_add_vm(struct daemon_stacks *stacks, struct daemon_target *target, uint64_t G);

/** Of a thread that waits for memory inside the VM nobody knows what its registers hold: then it is
 *  not full. */
enum daemon_outcome stacks_judge(const struct daemon_target *target,
				 const struct daemon_thread *thread, enum daemon_outcome outcome);

/** How much of a stack is seen: the more, the better. */
int stacks_rank(const struct daemon_stack *stack);

/** Forget the threads, not the VMs. */
void stacks_forget_threads(struct daemon_stacks *stacks);

/** Stacks as of one moment, after a look at all threads. */
struct stacks_snapshot {
	struct snapshot *snapshot;
	struct daemon_target *target;
	const struct format_functions *functions; /**< Those that the target's listener numbers. */
	const struct daemon_stacks_options *options;
};

/**
 * Hold the process, and read its stacks from what is copied meanwhile, in place of those that the
 * look has found; where one thread alone runs Lua, and no variables are asked for, these are of one
 * moment already. Of a thread that ran on, or of which less is seen now, or that was one too many
 * to be held, the look's stays, and the result is partial.
 * @param stacks In: of all threads, also those without Lua.
 * @return 0, or -1 without memory.
 */
int stacks_read_snapshot(const struct stacks_snapshot *reading, struct daemon_stacks *stacks);

#endif
