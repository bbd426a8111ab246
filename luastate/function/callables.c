/* SPDX-License-Identifier: MIT */
/* Which built-ins, C functions and traces do frames refer to, and what are their names? */
#include "luastate/function/callables.h"

#include <stdio.h>
#include <stdlib.h>

#include "luastate/function/library_names.h"

static void set_name(struct state_callable *item, const char *name)
{
	if (!name[0] || item->function.name)
		return;
	snprintf(item->name, sizeof(item->name), "%s", name);
	item->function.name = item->name;
	item->function.name_serial++;
}

static struct state_callable *get_item(struct luastate *state, const struct state_callable_key *key)
{
	struct state_callable *item;

	HASH_FIND(hh, state->callables, key, sizeof(*key), item);
	if (item)
		return item;
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->key = *key;
	item->function = (struct luastate_function){ .kind = (enum luastate_kind)key->kind,
						     .address = key->address,
						     .name_serial = 1 };
	return HASH_KEEP(state->callables, key, item);
}

struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid)
{
	const struct state_callable_key key = { .kind = kind, .address = address };
	struct state_callable *item = get_item(state, &key);
	struct state_cname *cname = NULL;

	if (!item)
		return NULL;
	if (kind == LUASTATE_BUILTIN) {
		set_name(item, state->ff_names[ffid]);
		/* LuaJIT's own tracebacks use this name. */
		if (!item->function.name && state->names_due_ns) {
			char name[32];

			snprintf(name, sizeof(name), "builtin#%d", ffid);
			set_name(item, name);
		}
	} else {
		HASH_FIND(hh, state->cnames, &address, sizeof(address), cname);
		if (cname)
			set_name(item, cname->name);
	}
	return &item->function;
}

struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line)
{
	const struct state_callable_key key = {
		.kind = LUASTATE_TRACE, .address = number, .proto = proto, .line = line
	};
	struct state_callable *item = get_item(state, &key);

	if (!item)
		return NULL;
	if (!item->chunkname && chunkname)
		item->chunkname = strdup(chunkname);
	item->function.chunkname = item->chunkname;
	item->function.firstline = line;
	return &item->function;
}

void state_free_callables(struct luastate *state)
{
	struct state_callable *item, *next;

	HASH_ITER(hh, state->callables, item, next)
	{
		HASH_DEL(state->callables, item);
		free(item->chunkname);
		free(item);
	}
}
