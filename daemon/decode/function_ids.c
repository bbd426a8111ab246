/* SPDX-License-Identifier: MIT */
/* Which id has each function? Each is announced once to the listener, before the first frame with
 * it. */
#include "daemon/decode/function_ids.h"
#include "daemon/decode/mapped.h"
#include "daemon/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/hash.h"
#include "daemon/native/native_names.h"

enum {
	/* Return addresses kept; more than any program's hot code has. */
	NATIVES_MAX = 65536,
	/* Exits with their own names; limited, because some programs make new traces all the
	 * time. */
	TARGET_EXITS_MAX = 4096,
};

/** What is known of one native address, or of one function by its start. */
struct target_native {
	uint64_t address;
	uint64_t start;
	uint32_t id;
	/* functions: interned by the space, or kept for good, so pointers are comparable */
	const char *name, *module;
	bool is_vm; /* functions: LuaJIT's own */
	UT_hash_handle hh;
};

/** An exit of a trace that has a pseudo function. */
struct target_exit {
	uint64_t key; /* trace and exit */
	uint32_t id;  /* id + 1 */
	UT_hash_handle hh;
};

/* Bit of a key that is a function's start, not an address: no user address has this bit. */
#define FUNCTION_KEY ((uint64_t)1 << 63)

static void free_natives(struct daemon_target *target, bool functions)
{
	struct target_native *item, *next;

	HASH_ITER(hh, target->natives, item, next)
	{
		if (!functions && (item->address & FUNCTION_KEY))
			continue;
		HASH_DEL(target->natives, item);
		free(item);
	}
}

void target_native_forget(struct daemon_target *target)
{
	free_natives(target, false);
}

void target_native_free(struct daemon_target *target)
{
	struct target_exit *item, *next;

	free_natives(target, true);
	HASH_ITER(hh, target->exits, item, next)
	{
		HASH_DEL(target->exits, item);
		free(item);
	}
}

void target_announce_anew(struct daemon_target *target)
{
	target_native_free(target);
	target->announcement++;
	memset(target->gc_ids, 0, sizeof(target->gc_ids));
	memset(target->vm_work_ids, 0, sizeof(target->vm_work_ids));
	memset(target->placeholder_ids, 0, sizeof(target->placeholder_ids));
	memset(target->call_ids, 0, sizeof(target->call_ids));
	target->stopped_id = target->blocked_id = 0;
}

static int announce(struct daemon_target *target, const struct format_function *function,
		    uint32_t *ret_id, struct failure *why)
{
	return target->listener.function(target->listener.context, function, ret_id, why);
}

/* @return NULL if memory is out. */
static struct target_native *add_native(struct daemon_target *target, uint64_t address)
{
	struct target_native *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->address = address;
	return HASH_KEEP(target->natives, address, item);
}

/* A function is announced once while its start keeps its name. When the maps change, most functions
 * stay the same. */
static int id_of_function(struct daemon_target *target, const struct symbols_function *function,
			  uint32_t *ret_id, struct failure *why)
{
	uint64_t key = function->start | FUNCTION_KEY;
	bool is_vm = daemon_native_is_vm(target->space, function->start);
	struct target_native *item;
	struct target_mapped mapped;
	struct format_function announced = {
		.kind = is_vm ? FORMAT_KIND_VM : FORMAT_KIND_NATIVE,
		.address = function->start,
		.name = function->name,
		.source = function->module,
	};

	HASH_FIND(hh, target->natives, &key, sizeof(key), item);
	if (item && item->name == function->name && item->module == function->module &&
	    item->is_vm == is_vm) {
		*ret_id = item->id;
		return 0;
	}
	announced.mapping = target_find_mapping(target, function->start, &mapped);
	if (announce(target, &announced, ret_id, why) != 0)
		return -1;
	if (!item)
		item = add_native(target, key);
	if (!item)
		return failure_set_errno(why, ENOMEM, 0, "keep a function");
	item->name = function->name;
	item->is_vm = is_vm;
	item->module = function->module;
	item->id = *ret_id;
	return 0;
}

/* Find the native function at an address. LuaJIT's own have names also without symbols. */
static int find_native(struct daemon_target *target, uint64_t address,
		       struct symbols_function *ret_function, struct failure *why)
{
	struct luastate_native_function own;

	if (symbols_find_function(target->space, address, ret_function, why) != 0)
		return -1;
	if (!ret_function->is_symbol && daemon_native_find(target->space, address, &own) &&
	    own.name) {
		ret_function->start = own.start;
		ret_function->end = own.end;
		ret_function->name = own.name;
	}
	return 0;
}

int target_native_id(struct daemon_target *target, uint64_t address, uint32_t *ret_id,
		     uint64_t *ret_start, struct failure *why)
{
	struct symbols_function function;
	struct target_native *item;

	HASH_FIND(hh, target->natives, &address, sizeof(address), item);
	if (!item) {
		uint32_t id = 0;

		if (HASH_COUNT(target->natives) >= NATIVES_MAX)
			target_native_forget(target);
		if (find_native(target, address, &function, why) != 0 ||
		    id_of_function(target, &function, &id, why) != 0)
			return -1;
		item = add_native(target, address);
		if (!item)
			return failure_set_errno(why, ENOMEM, 0, "keep a function");
		item->start = function.start;
		item->id = id;
	}
	*ret_id = item->id;
	*ret_start = item->start;
	return 0;
}

static enum format_kind kind_of(enum luastate_kind kind)
{
	switch (kind) {
	case LUASTATE_LUA:
		return FORMAT_KIND_LUA;
	case LUASTATE_BUILTIN:
		return FORMAT_KIND_BUILTIN;
	case LUASTATE_C:
		return FORMAT_KIND_CFUNC;
	case LUASTATE_TRACE:
		break;
	}
	return FORMAT_KIND_TRACE;
}

/* A C function's best name is its symbol, then its place in the target's tables. */
static const char *name_of(struct daemon_target *target, const struct luastate_function *function)
{
	struct symbols_function native;
	struct failure why;

	if (function->kind != LUASTATE_C)
		return function->name;
	if (symbols_find_function(target->space, function->address, &native, &why) != 0)
		return function->name;
	return native.is_symbol || !function->name ? native.name : function->name;
}

void target_describe_guest(struct daemon_target *target, const struct luastate_function *function,
			   struct format_function *ret_function)
{
	*ret_function = (struct format_function){
		.kind = kind_of(function->kind),
		.address = function->address,
		.name = name_of(target, function),
		.source = function->chunkname,
		.first_line = function->firstline,
		.proto = function->proto,
		.proto_line = function->proto_firstline,
	};
	if (!ret_function->name && function->kind == LUASTATE_BUILTIN)
		ret_function->name = "builtin";
}

int target_guest_id(struct daemon_target *target, struct luastate_function *function,
		    uint32_t *ret_id, struct failure *why)
{
	/* The constant keeps the sums distinct for any number of names. */
	uint32_t serial = function->name_serial + target->announcement * 0x9e3779b1u, id = 0;
	struct format_function announced;
	struct target_mapped mapped;

	if (function->caller_serial != serial) {
		target_describe_guest(target, function, &announced);
		if (function->kind == LUASTATE_C)
			announced.mapping = target_find_mapping(target, function->address, &mapped);
		if (announce(target, &announced, &id, why) != 0)
			return -1;
		function->caller_id = id;
		function->caller_serial = serial;
	}
	*ret_id = function->caller_id;
	return 0;
}

/* Announce a pseudo function on first use; @p known holds the id plus one. */
static int pseudo_id(struct daemon_target *target, const char *name, uint32_t *known,
		     uint32_t *ret_id, struct failure *why)
{
	const struct format_function function = { .kind = FORMAT_KIND_PSEUDO, .name = name };
	uint32_t id = 0;

	if (!*known) {
		if (announce(target, &function, &id, why) != 0)
			return -1;
		*known = id + 1;
	}
	*ret_id = *known - 1;
	return 0;
}

/* Find an exit, or add a new one while there is room. NULL: no room. */
static struct target_exit *get_exit(struct daemon_target *target,
				    const struct luastate_vm_work *work)
{
	uint64_t key = (uint64_t)work->trace << 32 | work->exit;
	struct target_exit *item;

	HASH_FIND(hh, target->exits, &key, sizeof(key), item);
	if (item || HASH_COUNT(target->exits) >= TARGET_EXITS_MAX)
		return item;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->key = key;
	return HASH_KEEP(target->exits, key, item);
}

static int exit_id(struct daemon_target *target, const struct luastate_vm_work *work,
		   uint32_t *ret_id, struct failure *why)
{
	struct target_exit *item = work->trace ? get_exit(target, work) : NULL;
	char name[64];

	if (!item)
		return pseudo_id(target, "[jit exit]", &target->vm_work_ids[LUASTATE_VM_WORK_EXIT],
				 ret_id, why);
	snprintf(name, sizeof(name), "[jit exit %" PRIu32 "/%" PRIu32 "]", work->trace, work->exit);
	return pseudo_id(target, name, &item->id, ret_id, why);
}

int target_vm_work_id(struct daemon_target *target, const struct luastate_vm_work *work,
		      uint32_t *ret_id, struct failure *why)
{
	static const char *const phases[LUASTATE_GC_PHASES] = {
		[LUASTATE_GC_PAUSE] = "[gc]",
		[LUASTATE_GC_PROPAGATE] = "[gc propagate]",
		[LUASTATE_GC_ATOMIC] = "[gc atomic]",
		[LUASTATE_GC_SWEEP_STRING] = "[gc sweep string]",
		[LUASTATE_GC_SWEEP] = "[gc sweep]",
		[LUASTATE_GC_FINALIZE] = "[gc finalize]",
	};
	static const char *const names[LUASTATE_VM_WORKS] = {
		[LUASTATE_VM_WORK_RECORD] = "[jit record]",
		[LUASTATE_VM_WORK_OPT] = "[jit opt]",
		[LUASTATE_VM_WORK_ASM] = "[jit asm]",
	};

	if (work->kind == LUASTATE_VM_WORK_EXIT)
		return exit_id(target, work, ret_id, why);
	if (work->kind == LUASTATE_VM_WORK_GC)
		return pseudo_id(target, phases[work->phase], &target->gc_ids[work->phase], ret_id,
				 why);
	return pseudo_id(target, names[work->kind], &target->vm_work_ids[work->kind], ret_id, why);
}

int target_placeholder_id(struct daemon_target *target, enum target_placeholder mark,
			  uint32_t *ret_id, struct failure *why)
{
	static const char *const names[TARGET_PLACEHOLDER_COUNT] = {
		[TARGET_PLACEHOLDER_GAP] = "[no unwind information]",
		[TARGET_PLACEHOLDER_CUT] = "[frames left out]",
		[TARGET_PLACEHOLDER_UNKNOWN] = "[native frames missing]",
		[TARGET_PLACEHOLDER_LOST] = "[Lua frames missing]",
	};

	return pseudo_id(target, names[mark], &target->placeholder_ids[mark], ret_id, why);
}

int target_sleep_id(struct daemon_target *target, const struct attach_sleep *sleep,
		    uint32_t *ret_id, struct failure *why)
{
	const char *call = daemon_call_name(sleep->syscall);
	char name[64];

	if (sleep->is_stopped)
		return pseudo_id(target, "[stopped]", &target->stopped_id, ret_id, why);
	if (sleep->syscall < 0 || sleep->syscall >= TARGET_CALLS_MAX)
		return pseudo_id(target, "[blocked]", &target->blocked_id, ret_id, why);
	if (call)
		snprintf(name, sizeof(name), "[%s]", call);
	else
		snprintf(name, sizeof(name), "[system call %" PRId64 "]", sleep->syscall);
	return pseudo_id(target, name, &target->call_ids[sleep->syscall], ret_id, why);
}
