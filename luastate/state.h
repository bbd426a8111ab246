/* SPDX-License-Identifier: MIT */
/* Private to luastate: the inside of a state, shared by its parts. */
#ifndef LUASTATE_STATE_H
#define LUASTATE_STATE_H

#include <string.h>
#include <time.h>
#include <uthash.h>

#include "luastate/luastate.h"
#include "layouts.inc"

extern const struct luastate_layout luastate_layouts[];
extern const size_t luastate_layout_count;

enum {
	/* A process holds one copy of LuaJIT, rarely two; more are a hostile map. */
	STATE_INTERPRETERS_MAX = 8,
	/* OpenResty runs one VM per worker, game servers dozens in one process. */
	STATE_VMS_MAX = 256,
	/* GCfunc.ffid has eight bits. */
	STATE_FFIDS = 256,
	/* What a walk reads of a GCfunc or a lua_State in one go, over all layouts. */
	STATE_OBJECT_MAX = 256,
	/* Prototypes with longer bytecode are rare; their parts are read one by one. */
	STATE_BYTECODE_KEEP = 16384,
	/* LuaJIT's own bound on instructions of one prototype is far below (BCMAX_D jumps). */
	STATE_BYTECODE_MAX = 1 << 26,
	/* Longest chunk name kept; a chunk name can be a whole source text. */
	STATE_CHUNKNAME_MAX = 1024,
	/* Names are identifiers. */
	STATE_NAME_MAX = 128,
	/* Functions kept before the caches are emptied: bounds memory on targets that make new code
	 * all the time. */
	STATE_FUNCTIONS_MAX = 65536,
};

struct state_interpreter {
	uint64_t start, end;
	uint8_t *code;
};

/** A cached prototype. `header` is the GCproto with its volatile members cleared. */
struct state_proto {
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX];
	uint32_t sizebc, numline;
	int64_t firstline;
	uint64_t bytecode, lineinfo; /* target addresses */
	uint32_t *bc;		     /* copy, or NULL where too long or not read yet */
	uint8_t *lines;
	unsigned serial;      /* sample in which the header was compared */
	uint8_t name_rank;    /* how sure the name is, 0 none */
	uint64_t nameless_pc; /* call site that had no name, 0 none */
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

/** A fast function, C function or trace that frames refer to. */
struct state_callable {
	uint64_t key;
	struct luastate_function function;
	char name[STATE_NAME_MAX];
	char *chunkname;
	UT_hash_handle hh;
};

/** A C function's name, found in the target's tables. */
struct state_cname {
	uint64_t address;
	char name[STATE_NAME_MAX];
	UT_hash_handle hh;
};

struct luastate {
	struct state_interpreter interpreters[STATE_INTERPRETERS_MAX];
	size_t interpreter_count;
	struct luastate_vm vms[STATE_VMS_MAX];
	size_t vm_count;
	struct state_proto *protos;
	struct state_callable *callables;
	struct state_cname *cnames;
	char ff_names[STATE_FFIDS][STATE_NAME_MAX];
	uint64_t names_loaded_ns; /* 0 never */
	unsigned serial;
	bool thorough;
};

/* ---- Values ----------------------------------------------------------------------------- */

static inline uint64_t state_u64(const uint8_t *bytes, int32_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t state_u32(const uint8_t *bytes, int32_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/** GC64: the tag of a tagged value. */
static inline int32_t state_tag(uint64_t value)
{
	return (int32_t)((int64_t)value >> 47);
}

/** GC64: the object of a tagged value. */
static inline uint64_t state_object(uint64_t value)
{
	return value & (((uint64_t)1 << 47) - 1);
}

/** User addresses are below 2^47 and no object lies in the first page. */
static inline bool state_is_pointer(uint64_t value)
{
	return value >= 4096 && value < (uint64_t)1 << 47;
}

static inline int state_read(const struct attach_reader *reader, uint64_t address, void *ret_bytes,
			     size_t len, struct failure *why)
{
	return attach_read(reader, remote_addr_make(address), ret_bytes, len, why);
}

/** A collectable object's type number. */
int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why);

/** Copy a GCstr's text, at most size - 1 bytes, always terminated. */
int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why);

/** The known VM with global state @p G, or NULL. */
const struct luastate_vm *state_vm_by_G(const struct luastate *state, uint64_t G);

const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc);

/* ---- Prototypes (proto.c) --------------------------------------------------------------- */

/** The prototype at @p address, compared with the target once per sample. */
struct state_proto *state_get_proto(struct luastate *state, const struct luastate_layout *layout,
				    const struct attach_reader *reader, uint64_t address,
				    struct failure *why);

/** Whether @p pc is inside, or right behind the last instruction. */
bool state_proto_holds(const struct state_proto *proto, uint64_t pc);

/** Line of the instruction at @p pc, 0 if the chunk is stripped. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc);

/** The instruction at @p pc. */
int state_proto_instruction(const struct state_proto *proto, const struct attach_reader *reader,
			    uint64_t pc, uint32_t *ret_ins, struct failure *why);

void state_free_protos(struct luastate *state);

/* ---- Names (name.c, tables.c) ----------------------------------------------------------- */

/** Derive a callee's name from the call instruction at @p pc of @p caller.
 *  @return Its rank: 0 none, 1 local or upvalue, 2 method or field, 3 global. */
int state_name_call(const struct luastate_layout *layout, const struct state_proto *caller,
		    const struct attach_reader *reader, uint64_t pc, char *ret_name, size_t size);

/** Whether a name is to be looked for at this call site. */
bool state_lacks_name(const struct state_proto *callee, uint64_t pc);

/** Give a prototype a name if this call site has one. */
void state_learn_name(const struct luastate_layout *layout, struct state_proto *callee,
		      const struct state_proto *caller, const struct attach_reader *reader,
		      uint64_t pc);

/** The callable with this kind and address, made on first sight. NULL when out of memory. */
struct luastate_function *state_get_callable(struct luastate *state, enum luastate_kind kind,
					     uint64_t address, int ffid);
struct luastate_function *state_get_trace(struct luastate *state, uint32_t number, uint64_t proto,
					  const char *chunkname, int64_t line);
void state_free_callables(struct luastate *state);
void state_free_names(struct luastate *state);

#endif
