/* SPDX-License-Identifier: MIT */
/* Private to luastate: who holds a function. */
#ifndef LUASTATE_DEFINITION_HOLDER_NAMES_H
#define LUASTATE_DEFINITION_HOLDER_NAMES_H

#include "luastate/definition/definition_names.h"

/**
 * Look for names of functions whose parents are gone, where the program keeps them: in upvalues of
 * functions that run, in tables there, and in loaded modules. Found ones are kept in state->held.
 * @param end_ns Of the thread's processor time: it ends then.
 */
void names_search_holders(const struct names_search *search, uint64_t end_ns);

/** What a function that was found so is called; NULL where none was, or another lay there. */
const char *names_held_as(const struct luastate *state, const struct names_wanted *wanted);
void names_forget_held(struct luastate *state);

#endif
