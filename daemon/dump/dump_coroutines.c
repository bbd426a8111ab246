/* SPDX-License-Identifier: MIT */
/* Which coroutines has a process, in one consistent snapshot? */
#include "attach/clock.h"
#include "daemon/dump/coroutines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/dump/dump_internal.h"
#include "daemon/dump/frames.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/tick_clock.h"

enum {
	/* Bytes to copy in addition to the pages that the first walk has read. */
	BESIDE_BYTES = 64 << 20,
	FIRST_WALK_S = 5,
	WALK_S = 10,
	/* Walks that take longer are not repeated. */
	AGAIN_S = 2,
};

#define S_NS ((uint64_t)1000000000)

/** A dump of a process's coroutines. */
struct dump {
	struct daemon_target *target;
	const struct daemon_coroutine_options *options;
	struct daemon_coroutines *out;
	struct snapshot *snapshot;
	struct luastate_position *positions;
	struct attach_registers *registers;
	size_t position_count, register_count;
	bool has_all_positions;
	struct luastate_values_options values; /* of the first walk: the rest of the budget */
};

/* ---- The first walk --------------------------------------------------------------------- */

/** The first walk of a VM's coroutines. */
struct first_walk {
	struct dump *dump;
	const struct luastate_memory *memory;
};

/* Later walks need the native stacks of running coroutines, and the values of variables if
 * requested. */
static bool note_coroutine(void *context, const struct luastate_coroutine *coroutine)
{
	struct first_walk *walk = context;
	struct dump *dump = walk->dump;

	if (coroutine->status == LUASTATE_COROUTINE_RUNNING)
		snapshot_note_stack(dump->snapshot, coroutine->vm_frame);
	for (size_t i = 0; dump->options->values && i < coroutine->frame_count; i++) {
		struct luastate_variables *variables;
		struct failure why;

		if (luastate_read_variables(dump->target->lua, walk->memory, &coroutine->frames[i],
					    &dump->values, &variables, &why) == 0)
			luastate_variables_destroy(variables);
	}
	return true;
}

static void walk_first(struct dump *dump)
{
	const struct attach_reader *reader = snapshot_live(dump->snapshot);
	const struct luastate_memory memory = { .stopped = reader, .any = reader };
	struct first_walk context = { .dump = dump, .memory = &memory };
	const struct luastate_coroutines how = { .visit = note_coroutine,
						 .context = &context,
						 .end_ns = clock_now_ns() + FIRST_WALK_S * S_NS };
	struct luastate *lua = dump->target->lua;
	uint64_t objects;
	struct failure why;

	if (dump->options->values)
		dump->values = *dump->options->values;
	luastate_begin_sample(lua, reader);
	for (size_t i = 0; i < luastate_vm_count(lua); i++)
		luastate_each_coroutine(lua, &memory, luastate_vm_get(lua, i)->G, &how, &objects,
					&why);
}

/* ---- The freeze ------------------------------------------------------------------------- */

static int freeze(struct dump *dump, struct failure *why)
{
	int ret = snapshot_take(dump->snapshot, why);
	const struct attach_freeze *last = snapshot_freeze(dump->snapshot);

	dump->out->pause_ns = last->pause_ns;
	if (ret != 0)
		return -1;
	dump->out->frozen = last->stopped_count;
	dump->out->copied_bytes = snapshot_copied_bytes(dump->snapshot);
	dump->out->is_huge = snapshot_is_huge(dump->snapshot);
	dump->out->has_woken = last->woken > 0;
	return 0;
}

static int find_positions(struct dump *dump, struct failure *why)
{
	const struct attach_freeze *last = snapshot_freeze(dump->snapshot);
	size_t count = last->thread_count;

	free(dump->positions);
	free(dump->registers);
	dump->position_count = dump->register_count = 0;
	dump->positions = calloc(count + 1, sizeof(*dump->positions));
	dump->registers = calloc(count + 1, sizeof(*dump->registers));
	if (!dump->positions || !dump->registers)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list coroutines");
	symbols_space_refresh(dump->target->space, why);
	/* Threads that began meanwhile, or were too many to freeze, count as woken. */
	dump->has_all_positions = last->woken == 0;
	for (size_t i = 0; i < count; i++) {
		const struct attach_frozen_thread *thread = &last->threads[i];

		if (!thread->is_unknown && !thread->woke)
			dump->positions[dump->position_count++] = coroutines_position(
				dump->target, thread->sp, thread->pc, thread->syscall);
		if (thread->is_stopped && !thread->woke)
			dump->registers[dump->register_count++] = thread->registers;
	}
	return 0;
}

/* ---- The walk of the copy --------------------------------------------------------------- */

static int walk(struct dump *dump, struct failure *why)
{
	const struct attach_reader *reader = snapshot_memory(dump->snapshot);
	const struct luastate_memory memory = { .stopped = reader,
						.any = snapshot_any(dump->snapshot) };
	const struct luastate_memory heap = { .stopped = reader, .any = reader };
	const struct coroutines_source source = {
		.memory = &memory,
		.snapshot = snapshot_copy(dump->snapshot),
		.positions = dump->positions,
		.position_count = dump->position_count,
		.has_all_positions = dump->has_all_positions,
		.registers = dump->registers,
		.register_count = dump->register_count,
		.end_ns = clock_now_ns() + WALK_S * S_NS,
		.values = dump->options->values,
		.heap = &heap,
	};
	int ret = coroutines_read(dump->target, &source, dump->out, why);

	dump->out->is_late = snapshot_take_late(dump->snapshot);
	return ret;
}

/* Drop the results of an earlier snapshot. */
static void forget(struct daemon_coroutines *out)
{
	struct daemon_coroutines head = { .pid = out->pid,
					  .has_all_vms = out->has_all_vms,
					  .pause_ns = out->pause_ns,
					  .frozen = out->frozen,
					  .copied_bytes = out->copied_bytes,
					  .is_huge = out->is_huge,
					  .has_woken = out->has_woken };

	memcpy(head.name, out->name, sizeof(head.name));
	daemon_coroutines_deinit(out);
	*out = head;
}

/* The next copy contains what this walk missed. Repeat if there is time for another freeze, and a
 * walk is short. */
static int freeze_and_walk(struct dump *dump, struct failure *why)
{
	uint64_t begin_ns;
	bool any = false;

	do {
		if (freeze(dump, why) != 0)
			return any ? 0 : -1;
		begin_ns = clock_now_ns();
		if (any)
			forget(dump->out);
		if (find_positions(dump, why) != 0 || walk(dump, why) != 0)
			return -1;
		any = true;
	} while (dump->out->is_late && snapshot_may_take(dump->snapshot) &&
		 clock_now_ns() - begin_ns < AGAIN_S * S_NS);
	return 0;
}

static enum daemon_end read_process(struct dump *dump, struct failure *why)
{
	const struct snapshot_options options = { .max_pause_ns = dump->options->max_pause_ns,
						  .max_bytes = dump->options->max_bytes,
						  .beside_bytes = BESIDE_BYTES };

	dump->out->has_all_vms = target_search_vms(dump->target);
	if (luastate_vm_count(dump->target->lua) == 0)
		return attach_process_fate(dump->target->process) == ATTACH_FATE_SAME
			       ? DAEMON_END_NO_VM
			       : DAEMON_END_EARLY;
	dump->snapshot = snapshot_create(dump->target, &options);
	if (!dump->snapshot) {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list coroutines");
		return DAEMON_END_SYSTEM;
	}
	walk_first(dump);
	if (freeze_and_walk(dump, why) != 0)
		return attach_process_fate(dump->target->process) == ATTACH_FATE_SAME
			       ? target_end_of_failure(why)
			       : DAEMON_END_EARLY;
	return DAEMON_END_STOPPED;
}

/* ---- One process ------------------------------------------------------------------------ */

static void deinit(struct dump *dump)
{
	snapshot_destroy(dump->snapshot);
	free(dump->positions);
	free(dump->registers);
}

static void tell_end(const struct dump *dump, enum daemon_end end, const struct failure *why,
		     char *ret_text, size_t len)
{
	pid_t pid = dump->out->pid;

	if (end == DAEMON_END_NO_VM || end == DAEMON_END_EARLY)
		target_tell_end(dump->target, pid, end, ret_text, len);
	else if (end == DAEMON_END_SYSTEM && why->kind == FAILURE_TIMEOUT)
		snprintf(ret_text, len,
			 "the threads of process %d did not stop in time: a longer --max-pause "
			 "helps",
			 (int)pid);
	else if (end != DAEMON_END_STOPPED)
		attach_explain(pid, why, ret_text, len);
}

enum daemon_end daemon_dump_coroutines(pid_t pid, const struct daemon_coroutine_options *options,
				       struct daemon_coroutines *ret_coroutines, char *ret_text,
				       size_t len)
{
	struct format_functions *functions = format_functions_create();
	const struct target_listener listener = { .function = frames_keep_function,
						  .context = functions };
	struct daemon_coroutines out = { .pid = pid };
	struct dump dump = { .options = options, .out = &out };
	struct attach_process *process = NULL;
	struct attach_names names;
	enum daemon_end end;
	struct failure why = { 0 };

	if (!functions) {
		snprintf(ret_text, len, "out of memory");
		return DAEMON_END_SYSTEM;
	}
	if (target_open_process(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &dump.target, &why) != 0 ||
	    target_refresh(dump.target, &why) != 0) {
		attach_explain(pid, &why, ret_text, len);
		end = target_end_of_failure(&why);
	} else {
		if (attach_names_of(pid, &names))
			snprintf(out.name, sizeof(out.name), "%s", names.command);
		end = read_process(&dump, &why);
		tell_end(&dump, end, &why, ret_text, len);
	}
	deinit(&dump);
	target_destroy(dump.target);
	attach_process_close(process);
	format_functions_destroy(functions);
	if (end == DAEMON_END_STOPPED)
		*ret_coroutines = out;
	else
		daemon_coroutines_deinit(&out);
	return end;
}
