/* SPDX-License-Identifier: MIT */
/* Private to luastate: who may have made a function. */
#ifndef LUASTATE_DEFINITION_PARENTS_H
#define LUASTATE_DEFINITION_PARENTS_H

#include "luastate/definition/definition_names.h"

/** Whether there is processor time for something like the last time. */
bool names_may_spend(struct state_budget *budget);
/** Charge it, and expect that the next one takes as long. */
void names_spend(struct state_budget *budget, uint64_t cost_ns);

/** Whether a prototype makes functions. @param header Its GCproto. */
bool parents_is_one(const struct luastate_layout *layout, const uint8_t *header);
/** Put one that does into the index, in which parents_sort() gives it its place. */
void parents_add(struct luastate *state, uint64_t G, const struct names_wanted *parent);
void parents_sort(struct luastate *state);

/** Walk along the list of a VM's objects, and make the index of its prototypes anew. */
void parents_walk(const struct names_search *search);
/** Whether that was done in this sample: then it has all that the sample shows. */
bool parents_were_walked(const struct names_search *search);

/** A prototype that has made a function, and was not returned before since the walk. 0: there is
 *  none, or the search was cut short: then candidates_left is 0. */
uint64_t parents_find(const struct names_search *search, const struct names_wanted *wanted);

void parents_begin_sample(struct luastate *state);
/** Have parents_find() return all again. */
void parents_forget_read(struct luastate *state);
void parents_free(struct luastate *state);

#endif
