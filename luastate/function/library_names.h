/* SPDX-License-Identifier: MIT */
/* Private to luastate: which names do libraries give to built-ins and C functions? */
#ifndef LUASTATE_FUNCTION_LIBRARY_NAMES_H
#define LUASTATE_FUNCTION_LIBRARY_NAMES_H

#include "luastate/state/state.h"

/** A C function's name, found in the target's tables. */
struct state_cname {
	uint64_t address;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/**
 * The registry's table of loaded modules, or the object under @p module in it; 0 if it has none.
 * @param end_ns As for state_table_get().
 */
uint64_t state_get_loaded(const struct luastate_vm *vm, const struct attach_reader *reader,
			  const char *module, uint64_t end_ns);

/** Search for names of built-ins and C functions, unless a recent search makes that too early. */
void state_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G);

void state_free_names(struct luastate *state);

#endif
