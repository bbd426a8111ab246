/* SPDX-License-Identifier: MIT */
/* Private to luastate: which functions without prototypes do frames refer to? */
#ifndef LUASTATE_FUNCTION_CALLABLES_H
#define LUASTATE_FUNCTION_CALLABLES_H

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

/** The callable with this kind and address, created if it is new. NULL when out of memory. */
struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid);
struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line);
void state_free_callables(struct luastate *state);

#endif
