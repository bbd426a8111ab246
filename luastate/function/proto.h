/* SPDX-License-Identifier: MIT */
/* Private to luastate: prototypes that are known. */
#ifndef LUASTATE_FUNCTION_PROTO_H
#define LUASTATE_FUNCTION_PROTO_H

#include "luastate/state/state.h"

enum {
	/* Prototypes with longer bytecode are rare; their parts are read one by one. */
	STATE_BYTECODE_KEEP = 16384,
	/* Of a prototype's debug part so much is kept, and so much of that compared. */
	STATE_DEBUG_KEEP = 16384,
	STATE_DEBUG_COMPARED = 1024,
	/* LuaJIT's own bound on instructions of one prototype is far below (BCMAX_D jumps). */
	STATE_BYTECODE_MAX = 1 << 26,
	/* Longest chunk name kept; a chunk name can be a whole source text. */
	STATE_CHUNKNAME_MAX = 1024,
	/* A program that was seen to replace code does it again: for this many samples prototypes
	 * are read with the stop. */
	STATE_STRICT_SAMPLES = 4096,
};

/** What tells one prototype from another that lay at its address before. */
struct state_identity {
	uint8_t header[STATE_OBJECT_MAX]; /* GCproto, its volatile members cleared */
	uint32_t name_hash, name_len;	  /* of the chunk name's GCstr */
};

/** What is known of a function's definition. */
enum state_definition_state {
	STATE_DEFINITION_UNKNOWN = 0, /* look for it */
	STATE_DEFINITION_FOUND,	      /* it says the name, or that there is none */
	STATE_DEFINITION_GONE,	      /* collected, as its parent is */
};

/** name_rank of a name that cannot be better. */
enum { STATE_NAMED_BY_HOLDER = UINT8_MAX - 2, STATE_NAMED_BY_DEFINITION };

/** A cached prototype. */
struct state_proto {
	uint64_t address;
	const struct luastate_layout *layout;
	struct state_identity identity;
	uint32_t sizebc, numline;
	int64_t firstline;
	uint64_t bytecode, lineinfo, chunkname; /* target addresses */
	uint32_t *bc;				/* copy, or NULL where too long or not read yet */
	uint8_t *debug;				/* copy of the debug part from lineinfo on */
	size_t debug_len;
	unsigned serial;	 /* sample in which the identity was compared */
	bool stale;		 /* something else lies there now */
	uint8_t name_rank;	 /* how sure the name is, 0 none */
	uint8_t definition;	 /* enum state_definition_state */
	bool is_read;		 /* what functions it makes is known */
	bool is_orphan;		 /* its parent is certainly gone */
	bool is_asked;		 /* who holds it was looked for */
	uint8_t parents_tries;	 /* indexes in which its parent was not found */
	unsigned parents_serial; /* the last of them */
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/**
 * The prototype at @p address, compared with the target once per sample: by what the stop copied,
 * or else by what is there now. Where that is not the known one any more nobody knows which it was
 * during the stop: it is lost for this sample, which is torn (state->losses), and the next ones are
 * strict.
 */
struct state_proto *state_get_proto(const struct state_view *view, uint64_t address,
				    struct failure *why);

/** Whether known prototypes are to be compared by what the stop copies. */
bool state_is_strict(const struct luastate *state);

/** A known prototype that was not seen to be replaced, or NULL. Reads nothing. */
const struct state_proto *state_find_proto(const struct luastate *state, uint64_t address);

/** The known prototype that holds the call at @p pc and a copy of it, or NULL. Reads nothing. */
const struct state_proto *state_find_call(const struct luastate *state, uint64_t pc);

/** The call at @p pc: from the stop, from a known prototype, or from the live process. */
int state_read_call(const struct state_view *view, uint64_t pc, uint32_t *ret_ins,
		    struct failure *why);

/** The prototype of a Lua function; NULL of another one. */
static inline struct state_proto *state_proto_of(const struct luastate_function *function)
{
	return function->kind == LUASTATE_LUA
		       ? (struct state_proto *)((uintptr_t)function -
						offsetof(struct state_proto, function))
		       : NULL;
}

/** Remember that the call at @p pc is in a prototype. */
void state_note_call(struct luastate *state, const struct state_proto *proto, uint64_t pc);

/** The place of a closure among those that are remembered. */
static inline size_t state_closure_slot(uint64_t function)
{
	return (size_t)(hash_spread(function) >> 40) & (STATE_CLOSURES - 1);
}

/** Bytes of the debug part from lineinfo on that belong to a prototype's identity. */
size_t state_compared_debug(const struct state_proto *proto);

/** Whether the prototype at @p address is the known one still, by what the reader has. Stopped
 *  window: yes, over an image. */
bool state_is_same_proto(const struct luastate *state, const struct luastate_layout *layout,
			 const struct attach_reader *reader, uint64_t address);

/** Whether @p pc is inside, or right behind the last instruction. */
bool state_proto_holds(const struct state_proto *proto, uint64_t pc);

/** Line of the instruction at @p pc, 0 if the chunk is stripped. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc);

/** Whether a prototype's parts lie where its header's sizes say. @param header Its GCproto. */
bool state_proto_is_consistent(const struct luastate_layout *layout, uint64_t address,
			       const uint8_t *header);

/** The instruction at @p pc. */
int state_proto_instruction(const struct state_proto *proto, const struct attach_reader *reader,
			    uint64_t pc, uint32_t *ret_ins, struct failure *why);

void state_free_protos(struct luastate *state);

#endif
