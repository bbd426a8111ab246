/* SPDX-License-Identifier: MIT */
/* Private to luastate: what names of functions by their definitions, and by who holds them, share.
 */
#ifndef LUASTATE_FUNCTION_DEFINITION_NAMES_H
#define LUASTATE_FUNCTION_DEFINITION_NAMES_H

#include "luastate/function/definition.h"
#include "luastate/stack.h"

/** What tells a function's prototype from others. */
struct names_wanted {
	uint64_t address, chunkname;
	int64_t firstline;
	uint32_t numline, sizebc;
	uint32_t name_hash, name_len; /* of the chunk name's GCstr */
};

/** What a parent makes of a function. */
struct state_definition {
	struct names_wanted function; /* by its address */
	uint64_t parent;
	unsigned sample; /* in which it was read */
	uint8_t fate;	 /* enum definition_fate */
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** Where names are looked for. */
struct names_search {
	struct luastate *state;
	const struct luastate_layout *layout;
	const struct attach_reader *reader; /* the process as it is now */
	uint64_t G;
	const struct luastate_frame
		*frames; /* that may be of parents, and of who holds functions */
	size_t frame_count;
	const struct attach_reader *stopped; /* their slots; NULL where there are none */
	bool walks;			     /* all objects may be gone through */
	bool asks_holders;		     /* who holds functions may be looked for */
};

/** A prototype as it is now. @param ret_header Its GCproto. @param ret_proto Without its chunk's
 * name from names_wanted_of(). */
bool names_read_proto(const struct names_search *search, uint64_t address, uint8_t *ret_header,
		      struct names_wanted *ret_proto);

bool names_read_header(const struct names_search *search, uint64_t address, uint8_t *ret_header);
struct names_wanted names_wanted_of(const struct luastate_layout *layout, uint64_t address,
				    const uint8_t *header);
/** Whether a prototype with these lines may have made the function. Without lines, all are 0. */
bool names_surround(uint64_t chunkname, int64_t firstline, int64_t lastline,
		    const struct names_wanted *wanted);

/** The colour of a VM's objects that the collector has found to be unreachable, and not freed so
 * far. What they refer to may be freed, and others' by now. STATE_WHITES where it is not known. */
uint8_t names_dead_colour(const struct names_search *search);
/** Whether an object may have that colour. Where it is not known, all that is white may, but for
 *  what runs. @param header Of the object. */
bool names_is_dead(const struct names_search *search, uint8_t colour, uint64_t address,
		   const uint8_t *header);

/** Whether both are the same prototype. */
bool names_is_same(const struct names_wanted *a, const struct names_wanted *b);

/** The definition by what is known of stacks and prototypes, or NULL. */
const struct state_definition *names_search_known(const struct names_search *search,
						  const struct names_wanted *wanted);

/** Whether a search may read what functions make; else it goes on in another sample. */
bool names_may_read(const struct names_search *search);
/** Note the processor time that a search has used since then for reading what functions make. */
void names_charge_reading(const struct names_search *search, uint64_t begin_ns);

/* ---- Who may have made a function (parents.c) ------------------------------------------- */

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

/* ---- Who holds a function (holder_names.c) ---------------------------------------------- */

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
