/* SPDX-License-Identifier: MIT */
/* Private to luastate: who holds a function, and under which name? */
#ifndef LUASTATE_DEFINITION_HOLDER_NAMES_H
#define LUASTATE_DEFINITION_HOLDER_NAMES_H

#include "luastate/definition/definition_names.h"

/**
 * Search for names of functions whose parents are gone, in their holders: upvalues of running
 * functions, tables in them, and loaded modules. Results go to state->held.
 * @param end_ns The search ends at this processor time of the thread.
 * @return Whether the results count. If the collector has finished a mark phase meanwhile, all are
 * dropped, and another search may find them.
 */
bool names_search_holders(const struct names_search *search, uint64_t end_ns);

/** The name that a holder gives a function; NULL if none was found, or for another function. */
const char *names_held_as(const struct luastate *state, const struct names_wanted *wanted);
void names_forget_held(struct luastate *state);

#endif
