/* SPDX-License-Identifier: MIT */
/* Private to luastate: functions that are no prototypes, and what libraries call them. */
#ifndef LUASTATE_FUNCTION_LIBRARY_NAMES_H
#define LUASTATE_FUNCTION_LIBRARY_NAMES_H

#include "luastate/state/state.h"

/** A fast function, C function or trace that frames refer to. */
struct state_callable {
	uint64_t key;
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	char *chunkname;
	UT_hash_handle hh;
};

/** A C function's name, found in the target's tables. */
struct state_cname {
	uint64_t address;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** The registry's table of loaded modules, or what it holds under @p module; 0 if it has none. */
uint64_t state_get_loaded(const struct luastate_vm *vm, const struct attach_reader *reader,
			  const char *module);

/** Look for names of fast functions and C functions, unless that was done a moment ago. */
void state_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G);

/** The callable with this kind and address, made on first sight. NULL when out of memory. */
struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid);
struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line);
void state_free_callables(struct luastate *state);
void state_free_names(struct luastate *state);

#endif
