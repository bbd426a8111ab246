/* SPDX-License-Identifier: MIT */
/* What do we know of one target: its process, address space and VMs? */
#include "daemon/decode/target.h"
#include "attach/clock.h"
#include "attach/freeze.h"
#include "luastate/explain.h"
#include "symbols/types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/hash.h"
#include "daemon/decode/function_ids.h"
#include "daemon/native/native_names.h"
#include "daemon/tick_clock.h"

enum {
	/* Larger unwind entries than LuaJIT's are not interpreters. */
	INTERPRETER_MAX_BYTES = 1 << 17,
	/* Searches of new code may use 1/CODE_REST of our time. */
	CODE_REST = 20,
	/* Half a second: on a busy machine another recorder traces a thread nearly all the time,
	 * because the recorder or the thread waits for a processor. */
	BUSY_TRIES = 500,
	BUSY_NAP_NS = 1000 * 1000,
};

/** Which pages of a range are in memory. */
struct resident_pages {
	uint64_t start, end;
	uint8_t *there;
};

static bool take_pages(void *context, uint64_t start, uint64_t end)
{
	struct resident_pages *pages = context;

	/* A kernel page may be larger than the range. */
	start = start > pages->start ? start : pages->start;
	end = end < pages->end ? end : pages->end;
	if (start < end)
		memset(pages->there + (start - pages->start) / ATTACH_PAGE_BYTES, 1,
		       (size_t)((end - start) / ATTACH_PAGE_BYTES));
	return true;
}

static bool find_resident(void *context, uint64_t start, uint64_t end, uint8_t *ret_there)
{
	const struct daemon_target *target = context;
	struct resident_pages pages = { .start = start, .end = end, .there = ret_there };
	struct failure why;

	return attach_process_each_resident(target->process, start, end, take_pages, &pages,
					    &why) == 0;
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
		target_destroy(target);
		return -1;
	}
	target->process = process;
	if (process)
		luastate_set_pages(target->lua, find_resident, target);
	target->generation = UINT64_MAX;
	*ret_target = target;
	return 0;
}

int target_create_core(struct symbols_core *core, const char *sysroot,
		       const struct target_listener *listener, struct daemon_target **ret_target,
		       struct failure *why)
{
	struct daemon_target *target;

	if (target_create(NULL, listener, &target, why) != 0)
		return -1;
	target->core = core;
	if (symbols_core_create_space(core, sysroot, &target->space, why) != 0 ||
	    symbols_unwinder_create(target->space, &target->unwinder, why) != 0 ||
	    target_find_interpreters(target, why) != 0) {
		target_destroy(target);
		return -1;
	}
	*ret_target = target;
	return 0;
}

const struct attach_reader *target_reader(const struct daemon_target *target)
{
	if (target->core)
		return symbols_core_reader(target->core);
	return target->process ? attach_process_reader(target->process) : NULL;
}

void target_destroy(struct daemon_target *target)
{
	if (!target)
		return;
	attach_threads_destroy(target->threads);
	symbols_unwinder_destroy(target->unwinder);
	symbols_space_destroy(target->space);
	luastate_destroy(target->lua);
	target_native_free(target);
	free(target);
}

/* ---- Opening ---------------------------------------------------------------------------- */

/* Another recorder lets go of a thread between its ticks; a debugger does not. */
int target_open_process(pid_t pid, struct attach_process **ret_process, struct failure *why)
{
	const struct timespec nap = { .tv_nsec = BUSY_NAP_NS };

	for (int tries = 0; attach_process_open(pid, ret_process, why) != 0; tries++) {
		if (why->kind != FAILURE_BUSY || tries == BUSY_TRIES)
			return -1;
		nanosleep(&nap, NULL);
	}
	return 0;
}

enum daemon_end target_end_of_failure(const struct failure *why)
{
	switch (why->kind) {
	case FAILURE_DENIED:
	case FAILURE_BUSY:
		return DAEMON_END_DENIED;
	case FAILURE_GONE:
		return DAEMON_END_EARLY;
	case FAILURE_NOT_FOUND:
		return DAEMON_END_NO_VM;
	default:
		return DAEMON_END_SYSTEM;
	}
}

/* ---- Interpreters ----------------------------------------------------------------------- */

static bool find_member(void *context, const char *structure, const char *path, int64_t *ret_offset)
{
	uint64_t offset = 0, size = 0;

	if (symbols_types_find_member(context, structure, path, &offset, &size, NULL) != 0)
		return false;
	*ret_offset = (int64_t)offset;
	return true;
}

static bool find_size(void *context, const char *structure, int64_t *ret_size)
{
	uint64_t size = 0;

	if (symbols_types_find_size(context, structure, &size, NULL) != 0)
		return false;
	*ret_size = (int64_t)size;
	return true;
}

static bool find_enumerator(void *context, const char *name, int64_t *ret_value)
{
	return symbols_types_find_enumerator(context, name, ret_value, NULL) == 0;
}

static bool is_late(void *context)
{
	return symbols_types_are_late(context);
}

/* Debug information of the program or of a debug file is more certain than any table. */
static void use_debug(struct daemon_target *target, uint64_t code)
{
	struct luastate_debug debug = { .member = find_member,
					.size = find_size,
					.enumerator = find_enumerator,
					.is_late = is_late };
	struct symbols_types *types;
	struct failure why;

	if (symbols_types_create(target->space, code, "global_State", &types, &why) != 0)
		return;
	debug.context = types;
	luastate_use_debug(target->lua, code, &debug, &why);
	symbols_types_destroy(types);
}

/* Which bytes of which file are mapped at an address. */
static struct target_code code_at(const struct daemon_target *target, uint64_t address)
{
	const struct symbols_mapping *mapping = symbols_space_find(target->space, address);

	if (!mapping)
		return (struct target_code){ 0 };
	return (struct target_code){ .inode = mapping->inode,
				     .offset = mapping->offset + (address - mapping->start),
				     .dev_major = mapping->dev_major,
				     .dev_minor = mapping->dev_minor };
}

/* The mappings of one file are adjacent. */
static void set_file(struct daemon_target *target, size_t index, uint64_t address)
{
	const struct symbols_mapping *own = symbols_space_find(target->space, address), *next = own;
	uint64_t start = own ? own->start : 0, end = own ? own->end : 0;

	while ((next = symbols_space_find(target->space, start - 1)) && next->inode == own->inode)
		start = next->start;
	while ((next = symbols_space_find(target->space, end)) && next->inode == own->inode)
		end = next->end;
	luastate_set_file(target->lua, index, start, end);
}

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
	bool added = false;

	if (!entry->constant || !luastate_is_interpreter(&rule) || len > INTERPRETER_MAX_BYTES ||
	    luastate_in_interpreter(target->lua, entry->start))
		return true;
	code = malloc(len);
	if (code && symbols_read_file_bytes(target->space, entry->start, code, len, &why) == 0)
		added = luastate_add_interpreter(target->lua, &rule, code, &why) == 0;
	free(code);
	if (added) {
		target->code[luastate_interpreter_count(target->lua) - 1] =
			code_at(target, entry->start);
		set_file(target, luastate_interpreter_count(target->lua) - 1, entry->start);
		if (!target->skips_debug) {
			daemon_native_learn(target->space, entry->start, entry->end);
			use_debug(target, entry->start);
		}
	}
	return true;
}

int target_find_interpreters(struct daemon_target *target, struct failure *why)
{
	luastate_reset(target->lua);
	return symbols_each_unwind_entry(target->space, LUASTATE_INTERPRETER_MIN_BYTES, visit_entry,
					 target, why);
}

/* Hash what identifies executable mappings of files. */
static uint64_t hash_code(const struct symbols_space *space)
{
	uint64_t hash = 1;

	for (size_t i = 0; i < symbols_space_count(space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(space, i);
		const uint64_t words[] = { mapping->start, mapping->end,       mapping->offset,
					   mapping->inode, mapping->dev_major, mapping->dev_minor };

		if (!mapping->executable || !mapping->inode)
			continue;
		hash = hash_words(words, sizeof(words), hash);
	}
	return hash;
}

bool target_has_new_code(const struct daemon_target *target, uint64_t now_ns)
{
	return target->code_due && now_ns >= target->code_ns;
}

static bool is_mapped(const struct daemon_target *target, size_t index)
{
	struct luastate_interpreter interpreter;
	struct target_code code;

	luastate_interpreter_get(target->lua, index, &interpreter);
	code = code_at(target, interpreter.start);
	return code.inode == target->code[index].inode &&
	       code.offset == target->code[index].offset &&
	       code.dev_major == target->code[index].dev_major &&
	       code.dev_minor == target->code[index].dev_minor;
}

static void drop_unmapped(struct daemon_target *target)
{
	for (size_t i = luastate_interpreter_count(target->lua); i-- > 0;) {
		size_t count = luastate_interpreter_count(target->lua);

		if (is_mapped(target, i))
			continue;
		luastate_drop_interpreter(target->lua, i);
		if (luastate_interpreter_count(target->lua) < count)
			memmove(&target->code[i], &target->code[i + 1],
				(count - 1 - i) * sizeof(target->code[0]));
	}
}

void target_take_new_code(struct daemon_target *target)
{
	uint64_t begin_ns = clock_now_ns(), now_ns;
	struct failure why;

	drop_unmapped(target);
	symbols_each_unwind_entry(target->space, LUASTATE_INTERPRETER_MIN_BYTES, visit_entry,
				  target, &why);
	now_ns = clock_now_ns();
	target->code_due = false;
	target->code_ns = now_ns + (now_ns - begin_ns) * CODE_REST;
}

int target_refresh_maps(struct daemon_target *target, struct failure *why)
{
	uint64_t generation, code_hash;
	bool is_new;

	if (symbols_space_refresh(target->space, why) != 0)
		return -1;
	generation = symbols_space_generation(target->space);
	if (generation != target->generation) {
		/* New mappings of data appear all the time. */
		code_hash = hash_code(target->space);
		is_new = target->generation == UINT64_MAX || code_hash != target->code_hash;
		target->generation = generation;
		target->code_hash = code_hash;
		target_native_forget(target);
		if (is_new && luastate_has_interpreter(target->lua))
			target->code_due = true;
		else if (is_new && target_find_interpreters(target, why) != 0)
			return -1;
	}
	return 0;
}

int target_refresh(struct daemon_target *target, struct failure *why)
{
	if (target_refresh_maps(target, why) != 0)
		return -1;
	return attach_threads_refresh(target->threads, why);
}

void target_refresh_threads(struct daemon_target *target)
{
	struct failure why; /* the next full refresh reports the process */

	attach_threads_refresh(target->threads, &why);
}
