/* SPDX-License-Identifier: MIT */
/* Private to luastate: which prototype may have created a function? */
#ifndef LUASTATE_DEFINITION_PARENTS_H
#define LUASTATE_DEFINITION_PARENTS_H

#include "luastate/definition/definition_names.h"

/** Whether the budget allows an action as long as the last one. */
bool names_may_spend(struct state_budget *budget);
/** Charge an action's processor time, and expect the same for the next one. */
void names_spend(struct state_budget *budget, uint64_t cost_ns);

/** Whether a prototype creates functions. @param header Its GCproto. */
bool parents_is_one(const struct luastate_layout *layout, const uint8_t *header);
/** Add a prototype that creates functions to the index. Call parents_sort() afterwards. */
void parents_add(struct luastate *state, uint64_t G, const struct names_wanted *parent);
void parents_sort(struct luastate *state);

/** Walk along the list of a VM's objects, and fill the index of its prototypes again. */
void parents_walk(const struct names_search *search);
/** Whether this sample walked. The index then has everything that the sample shows. */
bool parents_were_walked(const struct names_search *search);

/** Find a prototype that created a function, and was not returned before since the walk. 0 if
 * there is none, or the search was cut short; candidates_left is 0 in the second case. */
uint64_t parents_find(const struct names_search *search, const struct names_wanted *wanted);

void parents_begin_sample(struct luastate *state);
/** Let parents_find() return all prototypes again. */
void parents_forget_read(struct luastate *state);
void parents_free(struct luastate *state);

#endif
