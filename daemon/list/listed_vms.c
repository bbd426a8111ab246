/* SPDX-License-Identifier: MIT */
/* Which VMs has a process of the list? */
#include "daemon/list/listed_vms.h"

#include <stdio.h>

#include "attach/clock.h"
#include "daemon/decode/target.h"
#include "daemon/dump/dump_internal.h"
#include "luastate/explain.h"
#include "luastate/vm_stats.h"

enum {
	/* A VM that changes during a check does not look like one. */
	TRIES = 3,
};

static void add_heap(const struct daemon_target *target, const struct luastate_vm *vm,
		     struct daemon_listed *listed)
{
	struct luastate_stats_delta *delta = luastate_stats_delta_create();
	struct luastate_vm_stats stats;
	struct failure why;

	if (delta && luastate_read_vm_stats(target->lua, target_reader(target), vm->G, delta,
					    &stats, &why) == 0)
		listed->heap_bytes += stats.heap_bytes;
	luastate_stats_delta_destroy(delta);
}

static void take_vms(struct daemon_target *target, struct daemon_listed *listed)
{
	size_t count = luastate_vm_count(target->lua);

	listed->vms = (unsigned)count;
	listed->heap_bytes = 0;
	for (size_t i = 0; i < count; i++)
		add_heap(target, luastate_vm_get(target->lua, i), listed);
	if (count)
		snprintf(listed->fork, sizeof(listed->fork), "%s",
			 luastate_fork_of(luastate_vm_get(target->lua, 0)->layout));
}

static bool search(struct daemon_target *target, uint64_t end_ns, struct daemon_listed *listed)
{
	bool whole = false;
	struct failure why;

	target_limit_search(target, NULL, end_ns);
	for (unsigned tries = 0; tries < TRIES && !luastate_vm_count(target->lua); tries++) {
		target_find_vm(target, &why);
		whole = target_find_all_vms(target);
		if (clock_now_ns() >= end_ns)
			break;
	}
	if (!luastate_has_interpreter(target->lua) || (!whole && !luastate_vm_count(target->lua)))
		return false;
	listed->has_more_vms = !whole;
	take_vms(target, listed);
	return true;
}

bool listed_read_vms(struct daemon_listed *listed, uint64_t end_ns)
{
	const struct target_listener listener = { .function = target_ignore_function };
	struct attach_process *process;
	struct daemon_target *target;
	struct failure why;

	if (attach_process_open_to_read(listed->pid, &process, &why) != 0)
		return false;
	if (target_create(process, &listener, &target, &why) == 0) {
		/* Debug information of large programs takes longer than a list may. */
		target->skips_debug = true;
		listed->has_vms =
			target_refresh(target, &why) == 0 && search(target, end_ns, listed);
		target_destroy(target);
	}
	attach_process_close(process);
	return listed->has_vms;
}
