/* SPDX-License-Identifier: MIT */
/* Which stacks and coroutines has a core file? It is a consistent snapshot with all registers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/clock.h"
#include "daemon/dump/coroutines.h"
#include "daemon/dump/dump_internal.h"
#include "daemon/dump/frames.h"
#include "daemon/dump/stacks.h"
#include "daemon/snapshot/core_target.h"
#include "daemon/tick_clock.h"

enum {
	/* Frames of all threads, shown or not: limits the work that a hostile file causes to some
	 * 10 s. */
	DECODED_MAX = 1 << 23,
	WALK_S = 10,
};

#define S_NS ((uint64_t)1000000000)

/** A core file being read. */
struct reading {
	struct daemon_core *core;
	struct daemon_target *target; /* target of the core */
	struct format_functions *functions;
	struct attach_image *image;
};

/* ---- The file --------------------------------------------------------------------------- */

static void close_core(struct reading *reading)
{
	daemon_core_close(reading->core);
	format_functions_destroy(reading->functions);
	attach_image_destroy(reading->image);
}

/* @return As daemon_core_open(). The caller closes the reading, even after a failure. */
static enum daemon_end open_core(const char *path, const char *sysroot, struct reading *reading,
				 char *ret_text, size_t len)
{
	struct target_listener listener = { .function = frames_keep_function };
	enum daemon_end end;

	*reading = (struct reading){ .functions = format_functions_create(),
				     .image = attach_image_create() };
	if (!reading->functions || !reading->image) {
		snprintf(ret_text, len, "out of memory");
		return DAEMON_END_SYSTEM;
	}
	listener.context = reading->functions;
	end = daemon_core_open(path, sysroot, &listener, &reading->core, ret_text, len);
	if (end == DAEMON_END_STOPPED)
		reading->target = daemon_core_target(reading->core);
	return end;
}

static void tell_end(const struct reading *reading, enum daemon_end end, char *ret_text, size_t len)
{
	if (end == DAEMON_END_NO_VM)
		daemon_core_tell_no_vm(reading->core, ret_text, len);
	else if (end != DAEMON_END_STOPPED)
		snprintf(ret_text, len, "out of memory");
}

/* ---- Stacks ----------------------------------------------------------------------------- */

/* Registers only say which system call a thread was in. */
static int read_stack(struct reading *reading, size_t index, struct luastate_memory *ret_memory,
		      struct daemon_thread *ret_thread, struct failure *why)
{
	const struct symbols_core_thread *thread = daemon_core_thread(reading->core, index);
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;

	*ret_thread = (struct daemon_thread){ .tid = thread->tid, .doing = DAEMON_SAVED };
	ret_thread->syscall = thread->registers.syscall >= 0 ? thread->registers.syscall : -1;
	daemon_core_take_thread(reading->core, index, reading->image, ret_memory);
	luastate_set_thorough(reading->target->lua, true);
	if (target_decode(reading->target, reading->image, ret_memory, &sample, &outcome, why) != 0)
		return -1;
	return frames_copy_stack(reading->target, reading->functions, ret_memory->any, &sample,
				 outcome, &ret_thread->stack, why);
}

/* Owns the thread's stack from now on. */
static int add_thread(struct reading *reading, const struct daemon_stacks_options *options,
		      struct daemon_thread *thread, struct daemon_stacks *stacks)
{
	bool has_lua = thread->stack.G != 0;

	if (!has_lua && !options->all_threads) {
		daemon_stack_deinit(&thread->stack);
		stacks->others++;
		return 0;
	}
	if (has_lua && stacks_add_vm(stacks, reading->target, thread->stack.G) != 0) {
		daemon_stack_deinit(&thread->stack);
		return -1;
	}
	stacks->threads[stacks->count++] = *thread;
	return 0;
}

/* @return -1 if memory is out. */
static int read_threads(struct reading *reading, const struct daemon_stacks_options *options,
			struct daemon_stacks *stacks)
{
	struct luastate_values_options values = { 0 };
	size_t decoded = 0, shown = 0, count = daemon_core_thread_count(reading->core);

	if (options->values)
		values = *options->values;
	stacks->threads = calloc(count + 1, sizeof(*stacks->threads));
	if (!stacks->threads)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct luastate_memory memory;
		struct daemon_thread thread;
		struct failure why;

		if (decoded >= DECODED_MAX || shown >= STACKS_FRAMES_MAX ||
		    read_stack(reading, i, &memory, &thread, &why) != 0) {
			stacks->unread++;
			continue;
		}
		decoded += thread.stack.count;
		if (thread.stack.G || options->all_threads)
			shown += thread.stack.count;
		if (options->values)
			frames_read_variables(reading->target, &memory, &values, &thread.stack);
		if (add_thread(reading, options, &thread, stacks) != 0)
			return -1;
	}
	stacks->is_exhausted = values.is_exhausted;
	return 0;
}

static enum daemon_end read_stacks(struct reading *reading,
				   const struct daemon_stacks_options *options,
				   struct daemon_stacks *stacks)
{
	/* When a VM is known before the stacks are read, its frames are found in all threads. */
	target_search_vms(reading->target);
	if (luastate_vm_count(reading->target->lua) == 0)
		return DAEMON_END_NO_VM;
	return read_threads(reading, options, stacks) == 0 ? DAEMON_END_STOPPED : DAEMON_END_SYSTEM;
}

enum daemon_end daemon_dump_core_stacks(const char *path, const char *sysroot,
					const struct daemon_stacks_options *options,
					struct daemon_stacks *ret_stacks, char *ret_text,
					size_t len)
{
	struct daemon_stacks stacks = { .core = path };
	struct reading reading;
	enum daemon_end end = open_core(path, sysroot, &reading, ret_text, len);

	if (end == DAEMON_END_STOPPED) {
		stacks.pid = daemon_core_pid(reading.core);
		snprintf(stacks.name, sizeof(stacks.name), "%s", daemon_core_name(reading.core));
		stacks.is_truncated = daemon_core_is_truncated(reading.core);
		end = read_stacks(&reading, options, &stacks);
		tell_end(&reading, end, ret_text, len);
	}
	close_core(&reading);
	if (end == DAEMON_END_STOPPED)
		*ret_stacks = stacks;
	else
		daemon_stacks_deinit(&stacks);
	return end;
}

/* ---- Coroutines ------------------------------------------------------------------------- */

/* Threads whose notes are missing may have run other coroutines. */
static int walk(struct reading *reading, struct luastate_position *positions,
		struct attach_registers *registers, const struct luastate_values_options *values,
		struct daemon_coroutines *out, struct failure *why)
{
	const struct attach_reader *reader = target_reader(reading->target);
	const struct luastate_memory memory = { .stopped = reader, .any = reader };
	size_t count = daemon_core_thread_count(reading->core);
	const struct coroutines_source source = {
		.memory = &memory,
		.snapshot = reader,
		.positions = positions,
		.position_count = count,
		.has_all_positions = !daemon_core_is_truncated(reading->core),
		.registers = registers,
		.register_count = count,
		.end_ns = clock_now_ns() + WALK_S * S_NS,
		.values = values,
		.heap = &memory,
	};

	for (size_t i = 0; i < count; i++) {
		registers[i] = daemon_core_thread(reading->core, i)->registers;
		positions[i] = coroutines_position(reading->target, attach_sp(&registers[i]),
						   attach_pc(&registers[i]), registers[i].syscall);
	}
	return coroutines_read(reading->target, &source, out, why);
}

static enum daemon_end read_coroutines(struct reading *reading,
				       const struct luastate_values_options *values,
				       struct daemon_coroutines *out)
{
	size_t count = daemon_core_thread_count(reading->core);
	struct luastate_position *positions;
	struct attach_registers *registers;
	struct failure why;
	int ret = -1;

	out->has_all_vms = target_search_vms(reading->target);
	if (luastate_vm_count(reading->target->lua) == 0)
		return DAEMON_END_NO_VM;
	positions = calloc(count + 1, sizeof(*positions));
	registers = calloc(count + 1, sizeof(*registers));
	if (positions && registers)
		ret = walk(reading, positions, registers, values, out, &why);
	free(positions);
	free(registers);
	return ret == 0 ? DAEMON_END_STOPPED : DAEMON_END_SYSTEM;
}

enum daemon_end daemon_dump_core_coroutines(const char *path, const char *sysroot,
					    const struct luastate_values_options *values,
					    struct daemon_coroutines *ret_coroutines,
					    char *ret_text, size_t len)
{
	struct daemon_coroutines coroutines = { .core = path };
	struct reading reading;
	enum daemon_end end = open_core(path, sysroot, &reading, ret_text, len);

	if (end == DAEMON_END_STOPPED) {
		coroutines.pid = daemon_core_pid(reading.core);
		snprintf(coroutines.name, sizeof(coroutines.name), "%s",
			 daemon_core_name(reading.core));
		coroutines.is_core_truncated = daemon_core_is_truncated(reading.core);
		end = read_coroutines(&reading, values, &coroutines);
		tell_end(&reading, end, ret_text, len);
	}
	close_core(&reading);
	if (end == DAEMON_END_STOPPED)
		*ret_coroutines = coroutines;
	else
		daemon_coroutines_deinit(&coroutines);
	return end;
}
