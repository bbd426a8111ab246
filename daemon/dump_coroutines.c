/* SPDX-License-Identifier: MIT */
/*
 * All coroutines of a process at one moment.
 *
 * Their list is of all objects of a heap, which may be large, and changes all the time. So it is
 * walked twice: a look at the process that runs tells which pages it is on. These are copied while
 * all threads are held, with as much of what is beside them as there is time for, as new objects
 * are there. Then the copy is walked. A page that it lacks is read from the process that runs
 * again; the result is partial then, and says so.
 */
#include "daemon/coroutines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/frames.h"

enum {
	MAX_PAUSE_MS = 50,
	MAX_BYTES = 1 << 30,
	/* What is copied besides the pages that a look has met. */
	BESIDE_BYTES = 64 << 20,
	/* Of the native stack around the C frames of what runs: a stop's copy of a stack is as
	 * large. */
	STACK_BELOW_BYTES = 128 << 10,
	STACK_ABOVE_BYTES = 16 << 10,
	/* Threads that wake while they are not held are met again in the next hold; a process that
	 * is busy all the time would have us try for ever. */
	HOLDS = 3,
	LOOK_S = 5,
	WALK_S = 10,
	MS_NS = 1000 * 1000,
};

#define S_NS ((uint64_t)1000000000)

/** Coroutines of a process in the making. */
struct dump {
	struct daemon_target *target;
	const struct daemon_coroutine_options *options;
	struct daemon_coroutines *out;
	struct attach_pages *pages;
	struct attach_copy *copy;
	struct attach_hold hold;
	struct luastate_position *positions;
	struct attach_registers *registers;
	size_t position_count, register_count;
	bool has_all_positions;
};

/* ---- The look --------------------------------------------------------------------------- */

static bool note_run(void *context, uint64_t start, uint64_t end)
{
	return attach_pages_note(context, start, end);
}

/* Walks need the native stack of what runs. */
static bool note_stack(void *context, const struct luastate_coroutine *coroutine)
{
	struct dump *dump = context;
	const struct symbols_mapping *mapping;
	uint64_t start, end;
	struct failure why;

	if (coroutine->status != LUASTATE_COROUTINE_RUNNING)
		return true;
	mapping = symbols_space_find(dump->target->space, coroutine->cframe);
	if (!mapping)
		return true;
	start = coroutine->cframe - mapping->start > STACK_BELOW_BYTES
			? coroutine->cframe - STACK_BELOW_BYTES
			: mapping->start;
	end = mapping->end - coroutine->cframe > STACK_ABOVE_BYTES
		      ? coroutine->cframe + STACK_ABOVE_BYTES
		      : mapping->end;
	attach_process_each_resident(dump->target->process, start, end, note_run, dump->pages,
				     &why);
	return true;
}

static void look(struct dump *dump)
{
	const struct attach_reader *reader = attach_pages_reader(dump->pages);
	const struct luastate_memory memory = { .stopped = reader, .any = reader };
	const struct luastate_coroutines how = { .visit = note_stack,
						 .context = dump,
						 .end_ns = daemon_now_ns() + LOOK_S * S_NS };
	struct luastate *lua = dump->target->lua;
	uint64_t objects;
	struct failure why;

	luastate_begin_sample(lua, reader);
	for (size_t i = 0; i < luastate_vm_count(lua); i++)
		luastate_each_coroutine(lua, &memory, luastate_vm_get(lua, i)->G, &how, &objects,
					&why);
}

/* ---- What to copy ----------------------------------------------------------------------- */

/** Wishes in the making. */
struct wishes {
	struct dump *dump;
	const uint64_t *pages; /* of the look, ascending */
	size_t count, next;    /* the next one to pass */
	uint64_t beside_bytes; /* that are left */
};

/* @return Whether there was room. */
static bool want(struct dump *dump, uint64_t start, uint64_t end)
{
	struct failure why;

	if (start >= end || attach_copy_want(dump->copy, start, end, &why) == 0)
		return true;
	dump->out->is_huge = true;
	return false;
}

static bool want_met(struct wishes *wishes)
{
	for (size_t i = 0; i < wishes->count; i++) {
		uint64_t start = wishes->pages[i] * ATTACH_PAGE_BYTES;

		if (!want(wishes->dump, start, start + ATTACH_PAGE_BYTES))
			return false;
	}
	return true;
}

/* Pages in memory beside those that were met: new objects are there. */
static bool want_beside(void *context, uint64_t start, uint64_t end)
{
	struct wishes *wishes = context;

	while (start < end) {
		uint64_t met, stop;

		while (wishes->next < wishes->count &&
		       wishes->pages[wishes->next] * ATTACH_PAGE_BYTES < start)
			wishes->next++;
		met = wishes->next < wishes->count ? wishes->pages[wishes->next] * ATTACH_PAGE_BYTES
						   : UINT64_MAX;
		stop = met < end ? met : end;
		if (stop - start > wishes->beside_bytes)
			stop = start + wishes->beside_bytes / ATTACH_PAGE_BYTES * ATTACH_PAGE_BYTES;
		if (stop > start && !want(wishes->dump, start, stop))
			return false;
		wishes->beside_bytes -= stop - start;
		if (wishes->beside_bytes < ATTACH_PAGE_BYTES)
			return false;
		start = met < end ? met + ATTACH_PAGE_BYTES : end;
	}
	return true;
}

static size_t count_met(const struct wishes *wishes, const struct symbols_mapping *mapping)
{
	size_t count = 0;

	for (size_t i = 0; i < wishes->count; i++) {
		uint64_t at = wishes->pages[i] * ATTACH_PAGE_BYTES;

		count += at >= mapping->start && at < mapping->end;
		if (at >= mapping->end)
			break;
	}
	return count;
}

static void want_mappings(struct wishes *wishes)
{
	const struct symbols_space *space = wishes->dump->target->space;
	struct failure why;

	for (size_t i = 0; i < symbols_space_count(space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(space, i);

		if (!mapping->writable || mapping->inode || wishes->beside_bytes == 0 ||
		    count_met(wishes, mapping) == 0)
			continue;
		wishes->next = 0;
		attach_process_each_resident(wishes->dump->target->process, mapping->start,
					     mapping->end, want_beside, wishes, &why);
	}
}

static void choose(struct dump *dump)
{
	struct wishes wishes = { .dump = dump, .beside_bytes = BESIDE_BYTES };

	wishes.pages = attach_pages_list(dump->pages, &wishes.count);
	if (want_met(&wishes))
		want_mappings(&wishes);
}

/* ---- The hold --------------------------------------------------------------------------- */

static int hold(struct dump *dump, struct failure *why)
{
	uint64_t max_pause_ns = dump->options->max_pause_ns;

	if (max_pause_ns == 0)
		max_pause_ns = (uint64_t)MAX_PAUSE_MS * MS_NS;
	for (unsigned i = 0; i < HOLDS; i++) {
		attach_hold_deinit(&dump->hold);
		if (attach_hold(dump->target->process, max_pause_ns, dump->copy, &dump->hold,
				why) != 0) {
			if (why->kind != FAILURE_TIMEOUT || i + 1 == HOLDS)
				return -1;
		} else if (dump->hold.woken == 0) {
			break;
		}
	}
	dump->out->pause_ns = dump->hold.pause_ns;
	dump->out->held = dump->hold.stood;
	dump->out->copied_bytes = attach_copy_bytes(dump->copy);
	dump->out->has_woken = dump->hold.woken > 0;
	return 0;
}

/* The mapping of the stack may have grown since the maps were read. */
static struct luastate_position position_of(const struct dump *dump,
					    const struct attach_held_thread *thread)
{
	const struct symbols_mapping *mapping = symbols_space_find(dump->target->space, thread->sp);
	struct luastate_position position = {
		.sp = thread->sp,
		.stack_start = mapping ? mapping->start : thread->sp,
		.stack_end = mapping ? mapping->end : UINT64_MAX,
		.is_in_call = thread->is_in_call &&
			      !luastate_in_interpreter(dump->target->lua, thread->pc),
	};

	return position;
}

static int find_positions(struct dump *dump, struct failure *why)
{
	size_t count = dump->hold.thread_count;

	dump->positions = calloc(count + 1, sizeof(*dump->positions));
	dump->registers = calloc(count + 1, sizeof(*dump->registers));
	if (!dump->positions || !dump->registers)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list coroutines");
	symbols_space_refresh(dump->target->space, why);
	/* Threads that began meanwhile, or are too many to be held, count as woken. */
	dump->has_all_positions = dump->hold.woken == 0;
	for (size_t i = 0; i < count; i++) {
		const struct attach_held_thread *thread = &dump->hold.threads[i];

		if (!thread->is_unknown && !thread->woke)
			dump->positions[dump->position_count++] = position_of(dump, thread);
		if (thread->stands && !thread->woke)
			dump->registers[dump->register_count++] = thread->registers;
	}
	return 0;
}

/* ---- The walk --------------------------------------------------------------------------- */

/** The copy, and the process behind it. */
struct layers {
	const struct attach_reader *copy, *live;
	bool is_late; /* something was not in the copy */
};

static int read_layers(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	struct layers *layers = self;

	if (attach_read(layers->copy, address, ret_bytes, len, why) == 0)
		return 0;
	if (attach_read(layers->live, address, ret_bytes, len, why) != 0)
		return -1;
	layers->is_late = true;
	return 0;
}

static int walk(struct dump *dump, struct failure *why)
{
	struct layers stopped = { attach_copy_reader(dump->copy),
				  attach_process_reader(dump->target->process), false };
	struct layers any = stopped;
	const struct attach_reader stopped_reader = { read_layers, &stopped };
	const struct attach_reader any_reader = { read_layers, &any };
	const struct luastate_memory memory = { .stopped = &stopped_reader, .any = &any_reader };
	const struct coroutines_source source = {
		.memory = &memory,
		.moment = stopped.copy,
		.positions = dump->positions,
		.position_count = dump->position_count,
		.has_all_positions = dump->has_all_positions,
		.registers = dump->registers,
		.register_count = dump->register_count,
		.end_ns = daemon_now_ns() + WALK_S * S_NS,
	};
	int ret = coroutines_read(dump->target, &source, dump->out, why);

	dump->out->is_late = stopped.is_late;
	return ret;
}

static enum daemon_end read_process(struct dump *dump, struct failure *why)
{
	size_t max_bytes = dump->options->max_bytes ? dump->options->max_bytes : MAX_BYTES;

	dump->out->is_whole = target_search_vms(dump->target);
	if (luastate_vm_count(dump->target->lua) == 0)
		return attach_process_fate(dump->target->process) == ATTACH_FATE_SAME
			       ? DAEMON_END_NO_VM
			       : DAEMON_END_EARLY;
	dump->pages = attach_pages_create(attach_process_reader(dump->target->process),
					  max_bytes / ATTACH_PAGE_BYTES);
	dump->copy = attach_copy_create(max_bytes);
	if (!dump->pages || !dump->copy) {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list coroutines");
		return DAEMON_END_SYSTEM;
	}
	look(dump);
	choose(dump);
	if (hold(dump, why) != 0 || find_positions(dump, why) != 0 || walk(dump, why) != 0)
		return attach_process_fate(dump->target->process) == ATTACH_FATE_SAME
			       ? target_end_of_failure(why)
			       : DAEMON_END_EARLY;
	return DAEMON_END_STOPPED;
}

/* ---- One process ------------------------------------------------------------------------ */

static void deinit(struct dump *dump)
{
	attach_hold_deinit(&dump->hold);
	attach_pages_destroy(dump->pages);
	attach_copy_destroy(dump->copy);
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
			 "the threads of process %d did not stand in time: a longer --max-pause "
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
