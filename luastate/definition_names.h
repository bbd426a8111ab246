/* SPDX-License-Identifier: MIT */
/* Private to luastate: what names of functions by their definitions, and by who holds them, share.
 */
#ifndef LUASTATE_DEFINITION_NAMES_H
#define LUASTATE_DEFINITION_NAMES_H

#include "luastate/definition.h"

/** A function and what it is called. */
struct state_definition {
	uint64_t address, parent, chunkname; /* parent: 0 not known */
	int64_t firstline;
	uint32_t numline, sizebc, name_hash, name_len;
	unsigned sample; /* in which it was read */
	uint8_t fate;	 /* enum definition_fate */
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** What tells a function's prototype from others. */
struct names_wanted {
	uint64_t address, chunkname;
	int64_t firstline;
	uint32_t numline, sizebc;
	uint32_t name_hash, name_len; /* of the chunk name's GCstr */
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
};

/** By a thread's own clock, or another. */
uint64_t names_now_ns(clockid_t clock);

/** A prototype as it is now. @param ret_header Its GCproto. */
bool names_read_proto(const struct names_search *search, uint64_t address, uint8_t *ret_header,
		      struct names_wanted *ret_proto);

/** A new item without a name, for a table of them. NULL when out of memory. */
struct state_definition *names_create(const struct names_wanted *wanted);
/** Put it in a table, in the place of an older one. */
void names_keep(struct state_definition **table, struct state_definition *item);
/** @return NULL where there is none, or of another function that lay there. */
const struct state_definition *names_find(const struct state_definition *table,
					  const struct names_wanted *wanted);
void names_clear(struct state_definition **table);

/** The definition by what is known of stacks and prototypes, or NULL. */
const struct state_definition *names_search_known(const struct names_search *search,
						  const struct names_wanted *wanted);

/**
 * Look for names of functions whose parents are gone, where the program keeps them: in upvalues of
 * functions that run, in tables there, and in loaded modules (holder_names.c). Found ones are put
 * in state->held. Bounded in processor time.
 */
void names_search_holders(const struct names_search *search, uint64_t end_ns);

#endif
