/* SPDX-License-Identifier: MIT */
/* One target: its process, address space and VMs. */
#include "daemon/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/native.h"

enum {
	/* Memory searched for a VM where no thread runs one: LuaJIT's allocator and malloc place it
	 * in mappings far smaller than this. */
	SEARCH_MAPPING_MAX = 1 << 30,
	/* Larger unwind entries than LuaJIT's are no interpreters. */
	INTERPRETER_MAX_BYTES = 1 << 17,
};

static void forget_thread(struct attach_thread *thread)
{
	free(thread->data);
	thread->data = NULL;
}

int target_create(struct attach_process *process, const struct target_listener *listener,
		  struct daemon_target **ret_target, struct failure *why)
{
	struct daemon_target *target = calloc(1, sizeof(*target));

	if (!target)
		return failure_set_errno(why, ENOMEM, 0, "open the target");
	target->listener = *listener;
	target->lua = luastate_create();
	if (!target->lua) {
		free(target);
		return failure_set_errno(why, ENOMEM, 0, "open the target");
	}
	if (process && (symbols_space_create(process, &target->space, why) != 0 ||
			symbols_unwinder_create(target->space, &target->unwinder, why) != 0 ||
			attach_threads_create(process, &target->threads, why) != 0)) {
		target_destroy(target); /* the process stays the caller's */
		return -1;
	}
	target->process = process;
	target->generation = UINT64_MAX;
	*ret_target = target;
	return 0;
}

void target_destroy(struct daemon_target *target)
{
	if (!target)
		return;
	attach_threads_destroy(target->threads, forget_thread);
	symbols_unwinder_destroy(target->unwinder);
	symbols_space_destroy(target->space);
	luastate_destroy(target->lua);
	target_native_free(target);
	attach_process_close(target->process);
	free(target);
}

/* ---- Interpreters ----------------------------------------------------------------------- */

static bool visit_entry(void *context, const struct symbols_unwind_entry *entry)
{
	struct daemon_target *target = context;
	const struct luastate_unwind_rule rule = {
		.start = entry->start,
		.end = entry->end,
		.cfa_register = entry->cfa_register,
		.cfa_offset = entry->cfa_offset,
		.saved_offset = entry->saved_offset,
	};
	size_t len = (size_t)(entry->end - entry->start);
	struct failure why;
	uint8_t *code;

	if (!entry->constant || !luastate_is_interpreter(&rule) || len > INTERPRETER_MAX_BYTES)
		return true;
	code = malloc(len);
	if (code && symbols_read_file_bytes(target->space, entry->start, code, len, &why) == 0)
		luastate_add_interpreter(target->lua, entry->start, entry->end, code, &why);
	free(code);
	return true;
}

int target_find_interpreters(struct daemon_target *target, struct failure *why)
{
	luastate_reset(target->lua);
	return symbols_each_unwind_entry(target->space, LUASTATE_INTERPRETER_MIN_BYTES, visit_entry,
					 target, why);
}

int target_refresh(struct daemon_target *target, struct failure *why)
{
	uint64_t generation;

	if (symbols_space_refresh(target->space, why) != 0)
		return -1;
	generation = symbols_space_generation(target->space);
	if (generation != target->generation) {
		target->generation = generation;
		target_native_forget(target);
		/* New mappings of data come all the time; the VM's code stays where it is. */
		if (!luastate_has_interpreter(target->lua) &&
		    target_find_interpreters(target, why) != 0)
			return -1;
	}
	return attach_threads_refresh(target->threads, forget_thread, why);
}

/* ---- VMs -------------------------------------------------------------------------------- */

static bool find_on_stacks(struct daemon_target *target, struct failure *why)
{
	const struct attach_reader *reader = attach_process_reader(target->process);

	for (size_t i = 0; i < attach_threads_count(target->threads); i++) {
		struct attach_thread *thread = attach_threads_get(target->threads, i);
		uint64_t sp = 0;

		/* A running thread's stack pointer is not to be had without a stop. */
		if (attach_thread_activity(thread, &sp, NULL) != ATTACH_BLOCKED || !sp)
			continue;
		if (luastate_find_on_stack(target->lua, reader, sp, thread->stack_limit, why))
			return true;
	}
	return false;
}

static bool find_in_memory(struct daemon_target *target, struct failure *why)
{
	const struct attach_reader *reader = attach_process_reader(target->process);

	for (size_t i = 0; i < symbols_space_count(target->space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(target->space, i);

		if (!mapping->readable || !mapping->writable || mapping->inode ||
		    mapping->end - mapping->start > SEARCH_MAPPING_MAX)
			continue;
		if (luastate_find_in_range(target->lua, reader, mapping->start, mapping->end, why))
			return true;
	}
	return false;
}

int target_find_vm(struct daemon_target *target, struct failure *why)
{
	if (luastate_vm_count(target->lua) > 0)
		return 0;
	if (luastate_has_interpreter(target->lua) &&
	    (find_on_stacks(target, why) || find_in_memory(target, why)))
		return 0;
	return failure_set(why, FAILURE_NOT_FOUND, 0, attach_process_pid(target->process), 0,
			   "find a LuaJIT VM");
}
