/* SPDX-License-Identifier: MIT */
/* Private to daemon: how are the stacks of a process or a core file read? */
#ifndef DAEMON_DUMP_STACKS_H
#define DAEMON_DUMP_STACKS_H

#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "daemon/snapshot/snapshot.h"

enum {
	/* Most frames of all threads together; one stack has at most 6145. */
	STACKS_FRAMES_MAX = 1 << 20,
};

/**
 * List the VM of a stack, once.
 * @param G Its global_State, as in struct daemon_stack.
 * @return 0, or -1 if memory is out.
 */
int stacks_add_vm(struct daemon_stacks *stacks, struct daemon_target *target, uint64_t G);

/** Judge a chain: if a thread waits for memory inside the VM, its registers are unknown, so its
 * chain is not full. */
enum daemon_outcome stacks_judge(const struct daemon_target *target,
				 const struct daemon_thread *thread, enum daemon_outcome outcome);

/** How much of a stack is visible; higher is better. */
int stacks_rank(const struct daemon_stack *stack);

/** Forget the threads, but not the VMs. */
void stacks_forget_threads(struct daemon_stacks *stacks);

/** Input for stacks of one consistent snapshot, after probes of all threads. */
struct stacks_snapshot {
	struct snapshot *snapshot;
	struct daemon_target *target;
	const struct format_functions *functions; /**< Numbered by the target's listener. */
	const struct daemon_stacks_options *options;
};

/**
 * Freeze the process, and replace the stacks that the probes found with stacks from the copy. If
 * only one thread runs Lua, and no variables are requested, its stack already is a consistent
 * snapshot. Keep the probe's stack of a thread that ran on, shows less now, or was one too many to
 * freeze; the result is then partial.
 * @param stacks In: stacks of all threads, including those without Lua.
 * @return 0, or -1 if memory is out.
 */
int stacks_read_snapshot(const struct stacks_snapshot *reading, struct daemon_stacks *stacks);

#endif
