/* SPDX-License-Identifier: MIT */
/* Private to luastate: which names do libraries give to functions without prototypes? */
#ifndef LUASTATE_FUNCTION_LIBRARY_NAMES_H
#define LUASTATE_FUNCTION_LIBRARY_NAMES_H

#include "luastate/state/state.h"

/** Distinguishes callables. A flush frees traces' numbers for new traces, so a trace has its start
 * location as well. */
struct state_callable_key {
	uint64_t kind;	  /* enum luastate_kind */
	uint64_t address; /* of its code; a trace's number */
	uint64_t proto;	  /* where a trace starts; others: 0 */
	int64_t line;
};

/** A built-in, C function or trace that frames refer to. */
struct state_callable {
	struct state_callable_key key;
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

/**
 * The registry's table of loaded modules, or the object under @p module in it; 0 if it has none.
 * @param end_ns As for state_table_get().
 */
uint64_t state_get_loaded(const struct luastate_vm *vm, const struct attach_reader *reader,
			  const char *module, uint64_t end_ns);

/** Search for names of built-ins and C functions, unless a recent search makes that too early. */
void state_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G);

/** The callable with this kind and address, created if it is new. NULL when out of memory. */
struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid);
struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line);
void state_free_callables(struct luastate *state);
void state_free_names(struct luastate *state);

#endif
