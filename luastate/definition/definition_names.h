/* SPDX-License-Identifier: MIT */
/* Private to luastate: what names of functions by their definitions, and by who holds them, share.
 */
#ifndef LUASTATE_DEFINITION_DEFINITION_NAMES_H
#define LUASTATE_DEFINITION_DEFINITION_NAMES_H

#include "luastate/state/state.h"

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

/**
 * Name the Lua functions of a stack's frames by their definitions, as far as these were not looked
 * for before. Stopped window: no; reads the process as it is now. Bounded in processor time.
 */
void state_define_frames(struct luastate *state, const struct luastate_memory *memory,
			 const struct luastate_frame *frames, size_t count);

/** Note the names of all functions that the prototype at an address makes. */
void state_read_parent(const struct state_view *view, uint64_t address);

/** Name a function by what is known of prototypes of its VM. @return whether its definition is
 *  known. */
bool state_define_proto(const struct state_view *view, struct state_proto *proto);

/** For luastate_begin_sample(). */
void state_begin_definitions(struct luastate *state);

/** Forget what prototypes make, but not who may be whose parent. */
void state_forget_definitions(struct luastate *state);
void state_free_definitions(struct luastate *state);

#endif
