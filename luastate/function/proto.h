/* SPDX-License-Identifier: MIT */
/* Private to luastate: which prototypes are known? */
#ifndef LUASTATE_FUNCTION_PROTO_H
#define LUASTATE_FUNCTION_PROTO_H

#include "luastate/state/state.h"

enum {
	/* Prototypes with longer bytecode are rare. They are read in pieces. */
	STATE_BYTECODE_KEEP = 16384,
	/* Bytes of a prototype's debug part to keep, and bytes to compare in each sample. */
	STATE_DEBUG_KEEP = 16384,
	STATE_DEBUG_COMPARED = 1024,
	/* Maximum bytes to keep of all prototypes; most have some KiB. Forged ones may overlap, so
	 * their number bounds nothing. */
	STATE_PROTO_BYTES_MAX = 256 << 20,
	/* LuaJIT's own limit on instructions of one prototype is far below (BCMAX_D jumps). */
	STATE_BYTECODE_MAX = 1 << 26,
	/* Longest chunk name to keep. A chunk name can be a whole source text. */
	STATE_CHUNKNAME_MAX = 1024,
	/* A program that replaced code once is likely to do it again. For this many samples, the
	 * stop reads prototypes, too. */
	STATE_STRICT_SAMPLES = 4096,
};

/** Bits of GCproto.flags. Source: LuaJIT v2.1 src/lj_obj.h, PROTO_*. */
enum {
	STATE_PROTO_CHILD = 0x01, /* creates functions */
	STATE_PROTO_VARARG = 0x02,
	STATE_PROTO_NOJIT = 0x08, /* jit.off() */
	STATE_PROTO_ILOOP = 0x10, /* the compiler patched instructions, to stop counting them */
};

/** Distinguishes a prototype from earlier ones at the same address. */
struct state_identity {
	uint8_t header[STATE_OBJECT_MAX]; /* GCproto without its volatile members */
	uint32_t name_hash, name_len;	  /* of the chunk name's GCstr */
};

/** What is known about a function's definition. */
enum state_definition_state {
	STATE_DEFINITION_UNKNOWN = 0, /* not searched yet */
	STATE_DEFINITION_FOUND,	      /* the definition gives the name, or gives none */
	STATE_DEFINITION_GONE, /* the collector freed the parent, and the definition with it */
};

/** name_rank of a name that no other source can improve. */
enum { STATE_NAMED_BY_HOLDER = UINT8_MAX - 2, STATE_NAMED_BY_DEFINITION };

/** A cached prototype. */
struct state_proto {
	uint64_t address;
	UT_hash_handle hh; /* next to the key: a search touches one line of the cache each */
	bool stale;	   /* another object is at the address now */
	const struct luastate_layout *layout;
	struct state_identity identity;
	uint32_t sizebc, numline;
	int64_t firstline;
	uint64_t bytecode, lineinfo, chunkname; /* target addresses */
	uint32_t *bc;				/* copy, or NULL if too long or not read yet */
	uint8_t *debug;				/* copy of the debug part, from lineinfo on */
	size_t debug_len;
	unsigned serial;	 /* sample in which the identity was last compared */
	uint8_t name_rank;	 /* how certain the name is; 0: no name */
	uint8_t definition;	 /* enum state_definition_state */
	bool is_read;		 /* the functions that it creates are known */
	bool is_orphan;		 /* its parent is certainly gone */
	bool is_asked;		 /* its holder was searched for */
	uint8_t holders_tries;	 /* number of such searches without results */
	uint8_t parents_tries;	 /* number of indexes that lacked its parent */
	unsigned parents_serial; /* serial of the last such index */
	struct luastate_function function;
	char name[STATE_NAME_MAX];
};

/**
 * Get the prototype at @p address. It is compared with the target once per sample: with the bytes
 * that the stop copied, or else with the bytes that are there now. If it is not the known one any
 * more, nobody knows which of the two existed during the stop. It is then lost for this sample,
 * which becomes inconsistent (state->losses), and the next samples are strict.
 */
struct state_proto *state_get_proto(const struct state_view *view, uint64_t address,
				    struct failure *why);

/** Whether to compare known prototypes with the bytes that the stop copies. */
bool state_is_strict(const struct luastate *state);

/** A known prototype that was not seen to be replaced, or NULL. Reads nothing. */
const struct state_proto *state_find_proto(const struct luastate *state, uint64_t address);

/** The known prototype that holds the call at @p pc and has a copy of it, or NULL. Reads nothing.
 */
const struct state_proto *state_find_call(const struct luastate *state, uint64_t pc);

/** The call at @p pc: from the stop, from a known prototype, or from the live process. */
int state_read_call(const struct state_view *view, uint64_t pc, uint32_t *ret_ins,
		    struct failure *why);

/** The prototype of a Lua function; NULL for other functions. */
static inline struct state_proto *state_proto_of(const struct luastate_function *function)
{
	return function->kind == LUASTATE_LUA
		       ? (struct state_proto *)((uintptr_t)function -
						offsetof(struct state_proto, function))
		       : NULL;
}

/** Remember that the call at @p pc is in a prototype. */
void state_note_call(struct luastate *state, const struct state_proto *proto, uint64_t pc);

/** Slot of a closure in the table of remembered closures. */
static inline size_t state_closure_slot(uint64_t function)
{
	return (size_t)(hash_spread(function) >> 40) & (STATE_CLOSURES - 1);
}

/** Bytes of the debug part from lineinfo on that belong to a prototype's identity. */
size_t state_compared_debug(const struct state_proto *proto);

/** Whether the prototype at @p address is still the known one, according to the reader. Stopped
 * window: yes, over an image. */
bool state_is_same_proto(const struct luastate *state, const struct luastate_layout *layout,
			 const struct attach_reader *reader, uint64_t address);

/** Whether @p pc is inside, or directly after the last instruction. */
bool state_proto_holds(const struct state_proto *proto, uint64_t pc);

/** Line of the instruction at @p pc, 0 if the chunk is stripped. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc);

/** Whether a prototype's parts are where its header's sizes say. @param header Its GCproto. */
bool state_proto_is_consistent(const struct luastate_layout *layout, uint64_t address,
			       const uint8_t *header);

/** The instruction at @p pc. */
int state_proto_instruction(const struct state_proto *proto, const struct attach_reader *reader,
			    uint64_t pc, uint32_t *ret_ins, struct failure *why);

void state_free_protos(struct luastate *state);

#endif
