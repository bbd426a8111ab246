/* SPDX-License-Identifier: MIT */
/* Private to luastate: what do names by definitions and names by holders share? */
#ifndef LUASTATE_DEFINITION_DEFINITION_NAMES_H
#define LUASTATE_DEFINITION_DEFINITION_NAMES_H

#include "luastate/state/state.h"

/** Distinguishes a function's prototype from others. */
struct names_wanted {
	uint64_t address, chunkname;
	int64_t firstline;
	uint32_t numline, sizebc;
	uint32_t name_hash, name_len; /* of the chunk name's GCstr */
};

/** A parent's definition of a function. */
struct state_definition {
	struct names_wanted function; /* identified by its address */
	struct names_wanted parent;
	unsigned sample; /* sample in which it was read, or found unchanged */
	uint8_t fate;	 /* enum definition_fate */
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** Where to search for names. */
struct names_search {
	struct luastate *state;
	const struct luastate_layout *layout;
	const struct attach_reader *reader; /* the process as it is now */
	uint64_t G;
	const struct luastate_frame
		*frames; /* frames that may be those of parents, or of functions that hold others */
	size_t frame_count;
	const struct attach_reader *stopped; /* memory of their slots; NULL if there is none */
	bool walks;			     /* whether a walk along all objects is allowed */
	uint64_t end_ns;   /* of reading without walks; processor time of the thread */
	bool asks_holders; /* whether a search for holders of functions is allowed */
};

/** Read a prototype as it is now. @param ret_header Its GCproto. @param ret_proto The prototype,
 * with its chunk's name; names_wanted_of() leaves the name out. */
bool names_read_proto(const struct names_search *search, uint64_t address, uint8_t *ret_header,
		      struct names_wanted *ret_proto);

bool names_read_header(const struct names_search *search, uint64_t address, uint8_t *ret_header);
struct names_wanted names_wanted_of(const struct luastate_layout *layout, uint64_t address,
				    const uint8_t *header);
/** Whether a prototype with these lines may have created the function. Without line information,
 * all lines are 0. */
bool names_surround(uint64_t chunkname, int64_t firstline, int64_t lastline,
		    const struct names_wanted *wanted);

/** The colour of objects that the collector found unreachable and has not freed yet. The objects
 * that they refer to may be freed, and their memory reused. STATE_WHITES if unknown. */
uint8_t names_dead_colour(const struct names_search *search);
/** Whether an object may have that colour. If the colour is unknown, every white object may,
 * except functions that run. @param header Header of the object. */
bool names_is_dead(const struct names_search *search, uint8_t colour, uint64_t address,
		   const uint8_t *header);

/** Whether both are the same prototype. */
bool names_is_same(const struct names_wanted *a, const struct names_wanted *b);

/** The definition according to known stacks and prototypes, or NULL. */
const struct state_definition *names_search_known(const struct names_search *search,
						  const struct names_wanted *wanted);

/** Whether a search may read definitions of parents. If not, it continues in another sample.
 * Searches with walks share a budget of time. Another search has a time limit of its own, which
 * only forged objects exceed: an image gives the same names at each decoding. */
bool names_may_read(const struct names_search *search);
/** Charge the processor time since @p begin_ns to reading definitions of parents. */
void names_charge_reading(const struct names_search *search, uint64_t begin_ns);

/**
 * Name the Lua functions of a stack's frames by their definitions, unless an earlier search covered
 * them. Stopped window: no; reads the process as it is now. Bounded in processor time.
 */
void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_frame *frames, size_t count);

/** Note the names of all functions that the prototype at an address creates. */
void state_read_parent(const struct state_view *view, uint64_t address);

/** Name a function by known prototypes of its VM. @param may_read Whether to read definitions that
 * are not known yet. @return whether its definition is known. */
bool state_define_proto(const struct state_view *view, struct state_proto *proto, bool may_read);

/** Called by luastate_begin_sample(). */
void state_begin_definitions(struct luastate *state);

/** Forget the definitions of parents, but not the index of possible parents. */
void state_forget_definitions(struct luastate *state);
void state_free_definitions(struct luastate *state);

#endif
