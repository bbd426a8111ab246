/* SPDX-License-Identifier: MIT */
/* Ids of functions: each is announced once to the listener, before the first frame with it. */
#include "daemon/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
	/* Return addresses kept; more than any program's hot code has. */
	NATIVES_MAX = 65536,
};

/** What is known of one native address, or of one function by its start. */
struct target_native {
	uint64_t address;
	uint64_t start;
	uint32_t id;
	const char *name, *module; /* functions: interned by the space, so pointers tell */
	UT_hash_handle hh;
};

/* The start of a function, as a key beside the addresses: no user address has this bit. */
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
	free_natives(target, true);
}

static int announce(struct daemon_target *target, const struct format_function *function,
		    uint32_t *ret_id, struct failure *why)
{
	uint32_t id = target->next_id;

	if (target->listener.function(target->listener.context, id, function, why) != 0)
		return -1;
	target->next_id++;
	*ret_id = id;
	return 0;
}

/* A function is announced once, as long as its start keeps its name; when the maps change, most
 * functions stay what they were. */
static int id_of_function(struct daemon_target *target, const struct symbols_function *function,
			  uint32_t *ret_id, struct failure *why)
{
	uint64_t key = function->start | FUNCTION_KEY;
	struct target_native *item;
	struct format_function announced = {
		.kind = FORMAT_KIND_NATIVE,
		.address = function->start,
		.name = function->name,
		.source = function->module,
	};

	HASH_FIND(hh, target->natives, &key, sizeof(key), item);
	if (item && item->name == function->name && item->module == function->module) {
		*ret_id = item->id;
		return 0;
	}
	if (announce(target, &announced, ret_id, why) != 0)
		return -1;
	if (!item) {
		item = calloc(1, sizeof(*item));
		if (!item)
			return failure_set_errno(why, ENOMEM, 0, "keep a function");
		item->address = key;
		HASH_ADD(hh, target->natives, address, sizeof(item->address), item);
	}
	item->name = function->name;
	item->module = function->module;
	item->id = *ret_id;
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
		if (symbols_find_function(target->space, address, &function, why) != 0 ||
		    id_of_function(target, &function, &id, why) != 0)
			return -1;
		item = calloc(1, sizeof(*item));
		if (!item)
			return failure_set_errno(why, ENOMEM, 0, "keep a function");
		item->address = address;
		item->start = function.start;
		item->id = id;
		HASH_ADD(hh, target->natives, address, sizeof(item->address), item);
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
	case LUASTATE_FAST:
		return FORMAT_KIND_FAST;
	case LUASTATE_C:
		return FORMAT_KIND_CFUNC;
	case LUASTATE_TRACE:
		break;
	}
	return FORMAT_KIND_TRACE;
}

/* A C function is best known by its symbol, then by where the target's tables hold it. */
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

int target_guest_id(struct daemon_target *target, struct luastate_function *function,
		    uint32_t *ret_id, struct failure *why)
{
	struct format_function announced = {
		.kind = kind_of(function->kind),
		.address = function->address,
		.source = function->chunkname,
		.first_line = function->firstline,
	};
	uint32_t id = 0;

	if (function->caller_serial != function->name_serial) {
		announced.name = name_of(target, function);
		if (!announced.name && function->kind == LUASTATE_FAST)
			announced.name = "builtin";
		if (announce(target, &announced, &id, why) != 0)
			return -1;
		function->caller_id = id;
		function->caller_serial = function->name_serial;
	}
	*ret_id = function->caller_id;
	return 0;
}

int target_pseudo_id(struct daemon_target *target, enum format_state state, uint32_t *ret_id,
		     struct failure *why)
{
	static const char *const names[FORMAT_STATE_COUNT] = {
		[FORMAT_STATE_GC] = "[gc]",
		[FORMAT_STATE_EXIT] = "[jit exit]",
		[FORMAT_STATE_RECORD] = "[jit record]",
		[FORMAT_STATE_OPT] = "[jit opt]",
		[FORMAT_STATE_ASM] = "[jit asm]",
	};
	const struct format_function function = { .kind = FORMAT_KIND_PSEUDO,
						  .name = names[state] };
	uint32_t id = 0;

	if (!target->pseudo_ids[state]) {
		if (announce(target, &function, &id, why) != 0)
			return -1;
		target->pseudo_ids[state] = id + 1;
	}
	*ret_id = target->pseudo_ids[state] - 1;
	return 0;
}
