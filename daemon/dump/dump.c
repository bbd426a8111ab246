/* SPDX-License-Identifier: MIT */
/* What did the compilers of all VMs of a process or a core file compile? No thread is stopped. */
#include "daemon/dump.h"
#include "attach/clock.h"
#include "daemon/decode/mapped.h"
#include "daemon/decode/target.h"
#include "luastate/explain.h"
#include "luastate/jit_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/dump/dump_internal.h"
#include "daemon/snapshot/core_target.h"
#include "daemon/tick_clock.h"

enum {
	/* All memory: some 15 GiB of heap. */
	DUMP_SEARCH_S = 10,
	/* Checks of objects that look like coroutines, because their VM may have changed during a
	 * check. Most are not coroutines, so if a VM is known, CHECKS_MORE more checks suffice. */
	CHECKS = 100,
	CHECKS_MORE = 5,
	CHECK_NAP_NS = 4 * 1000 * 1000,
	REFUSED_MAX = 64,
	/* Each search starts without knowledge, because a running VM may have contradicted its own
	 * layout, and such a result is kept. */
	SEARCHES = 2,
	/* Most reads of a VM whose traces change during a read. */
	READS = 10,
};

int target_ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	(void)context, (void)function, (void)why;
	*ret_id = 0;
	return 0;
}

static int read_jit_report(struct daemon_target *target, uint64_t G,
			   struct luastate_jit_report **ret_report, struct failure *why)
{
	const struct timespec nap = { .tv_nsec = CHECK_NAP_NS };
	unsigned reads = target->process ? READS : 1;

	while (luastate_jit_report_read(target->lua, target_reader(target), G, ret_report, why) !=
	       0) {
		if (--reads == 0 || why->kind == FAILURE_GONE)
			return -1;
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* @param why Set if the VM could not be read. */
static void read_vm(struct daemon_target *target, const struct luastate_vm *vm,
		    struct daemon_dump *dump, struct failure *why)
{
	struct daemon_dump_vm *item = &dump->vms[dump->count];
	uint64_t G = vm->G;
	struct failure ignored;

	if (read_jit_report(target, G, &item->report, why) != 0) {
		dump->unread++;
		return;
	}
	luastate_describe_layout(vm->layout, item->layout, sizeof(item->layout));
	if (luastate_read_version(target->lua, target_reader(target), G, item->version,
				  sizeof(item->version), &ignored) != 0)
		item->version[0] = '\0';
	dump->count++;
}

/* A running VM may match no layout in one check, and its own in the next. */
static void check_again(struct daemon_target *target)
{
	const struct attach_reader *reader = target_reader(target);
	const struct timespec nap = { .tv_nsec = CHECK_NAP_NS };
	const uint64_t *refused;
	uint64_t coroutines[REFUSED_MAX];
	size_t count = luastate_refused(target->lua, &refused), left = 0;
	unsigned checks = luastate_vm_count(target->lua) ? CHECKS_MORE : CHECKS;
	struct failure why;

	for (; left < count && left < REFUSED_MAX; left++)
		coroutines[left] = refused[left];
	for (unsigned check = 0; check < checks && left; check++) {
		nanosleep(&nap, NULL);
		for (size_t i = 0; i < left;)
			if (luastate_vm_of(target->lua, reader, coroutines[i], &why))
				coroutines[i] = coroutines[--left];
			else
				i++;
	}
}

static bool search_once(struct daemon_target *target, uint64_t end_ns)
{
	struct failure why;
	bool whole;

	target_limit_search(target, NULL, end_ns);
	whole = target_find_all_vms(target);
	if (target->process)
		check_again(target);
	/* If memory is too large, threads that wait in Lua still show their VMs. */
	if (luastate_vm_count(target->lua) == 0)
		target_find_vm(target, &why);
	return whole;
}

/* Forget what is known of the process. @return false if another search cannot help. */
static bool begin_anew(struct daemon_target *target)
{
	struct failure why;

	return target->process && luastate_has_interpreter(target->lua) &&
	       attach_process_fate(target->process) == ATTACH_FATE_SAME &&
	       target_find_interpreters(target, &why) == 0;
}

bool target_search_vms(struct daemon_target *target)
{
	uint64_t end_ns = clock_now_ns() + DUMP_SEARCH_S * (uint64_t)1000000000;
	bool whole = search_once(target, end_ns);

	for (unsigned searches = 1; searches < SEARCHES; searches++) {
		/* A search that stopped early has used up the time. */
		if (luastate_vm_count(target->lua) > 0 || !whole || !begin_anew(target))
			break;
		whole = search_once(target, end_ns);
	}
	return whole;
}

/* Read all known VMs. @param why Set if one could not be read. @return 0, or -1 if memory is
 * out. */
static int read_known(struct daemon_target *target, struct daemon_dump *dump, struct failure *why)
{
	size_t count = luastate_vm_count(target->lua);

	free(dump->vms);
	dump->vms = calloc(count + 1, sizeof(*dump->vms));
	if (!dump->vms)
		return -1;
	dump->unread = 0;
	for (size_t i = 0; i < count; i++)
		read_vm(target, luastate_vm_get(target->lua, i), dump, why);
	return 0;
}

static enum daemon_end read_vms(struct daemon_target *target, struct daemon_dump *dump,
				struct failure *why)
{
	for (unsigned searches = 0; searches < SEARCHES; searches++) {
		dump->has_all_vms = target_search_vms(target);
		if (read_known(target, dump, why) != 0)
			return DAEMON_END_SYSTEM;
		/* The layout may be wrong: that of a build without traces. */
		if (dump->count > 0 || !dump->unread || !begin_anew(target))
			break;
	}
	return dump->count ? DAEMON_END_STOPPED : DAEMON_END_NO_VM;
}

/* Unreadable memory of an ending process looks like memory without a VM. Between the end of its
 * memory and its own end, a process looks as if it ran another program. */
static enum daemon_end judge_end(const struct daemon_target *target, enum daemon_end end,
				 struct daemon_dump *dump)
{
	dump->ended = attach_process_fate(target->process) != ATTACH_FATE_SAME;
	return end == DAEMON_END_NO_VM && dump->ended ? DAEMON_END_EARLY : end;
}

/* Say why no traces could be read. */
static void tell_unread(const struct failure *why, char *ret_text, size_t len)
{
	char reason[128];

	failure_describe(why, reason, sizeof(reason));
	if (why->kind == FAILURE_NOT_FOUND)
		snprintf(ret_text, len,
			 "LuaJIT was built without its compiler, or its layout of traces is "
			 "unknown");
	else
		snprintf(ret_text, len, "the traces could not be read: %s", reason);
}

void target_tell_end(const struct daemon_target *target, pid_t pid, enum daemon_end end,
		     char *ret_text, size_t len)
{
	if (end == DAEMON_END_SYSTEM)
		snprintf(ret_text, len, "out of memory");
	else if (end == DAEMON_END_EARLY)
		snprintf(ret_text, len, "the program of process %d ended before its VMs were read",
			 (int)pid);
	else if (!luastate_has_interpreter(target->lua)) {
		snprintf(ret_text, len, "no LuaJIT in process %d", (int)pid);
		mapped_add_hint(target->space, ret_text, len);
	} else
		snprintf(ret_text, len,
			 "no known LuaJIT VM in process %d: ljrecord --explain --pid %d shows more",
			 (int)pid, (int)pid);
}

enum daemon_end daemon_dump_traces(pid_t pid, struct daemon_dump *ret_dump, char *ret_text,
				   size_t len)
{
	const struct target_listener listener = { .function = target_ignore_function };
	struct attach_process *process = NULL;
	struct daemon_target *target = NULL;
	struct daemon_dump dump = { .pid = pid };
	struct attach_names names;
	enum daemon_end end;
	struct failure why;

	if (attach_process_open_to_read(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0) {
		attach_explain(pid, &why, ret_text, len);
		end = target_end_of_failure(&why);
	} else {
		if (attach_names_of(pid, &names))
			snprintf(dump.name, sizeof(dump.name), "%s", names.command);
		end = judge_end(target, read_vms(target, &dump, &why), &dump);
		if (end == DAEMON_END_NO_VM && dump.unread)
			tell_unread(&why, ret_text, len);
		else
			target_tell_end(target, pid, end, ret_text, len);
	}
	target_destroy(target);
	attach_process_close(process);
	if (end == DAEMON_END_STOPPED)
		*ret_dump = dump;
	else
		daemon_dump_deinit(&dump);
	return end;
}

enum daemon_end daemon_dump_core_traces(const char *path, const char *sysroot,
					struct daemon_dump *ret_dump, char *ret_text, size_t len)
{
	const struct target_listener listener = { .function = target_ignore_function };
	struct daemon_dump dump = { .core = path };
	struct daemon_core *core;
	struct failure why;
	enum daemon_end end = daemon_core_open(path, sysroot, &listener, &core, ret_text, len);

	if (end != DAEMON_END_STOPPED)
		return end;
	dump.pid = daemon_core_pid(core);
	snprintf(dump.name, sizeof(dump.name), "%s", daemon_core_name(core));
	dump.is_truncated = daemon_core_is_truncated(core);
	end = read_vms(daemon_core_target(core), &dump, &why);
	if (end == DAEMON_END_NO_VM && dump.unread)
		tell_unread(&why, ret_text, len);
	else if (end == DAEMON_END_NO_VM)
		daemon_core_tell_no_vm(core, ret_text, len);
	else if (end != DAEMON_END_STOPPED)
		snprintf(ret_text, len, "out of memory");
	daemon_core_close(core);
	if (end == DAEMON_END_STOPPED)
		*ret_dump = dump;
	else
		daemon_dump_deinit(&dump);
	return end;
}

void daemon_dump_deinit(struct daemon_dump *dump)
{
	for (size_t i = 0; i < dump->count; i++)
		luastate_jit_report_destroy(dump->vms[i].report);
	free(dump->vms);
	*dump = (struct daemon_dump){ 0 };
}
