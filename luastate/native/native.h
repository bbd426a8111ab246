/* SPDX-License-Identifier: MIT */
/* What do we know about the native functions of a file while we look for their names? Private to
 * luastate. */
#ifndef LUASTATE_NATIVE_NATIVE_H
#define LUASTATE_NATIVE_NATIVE_H

#include "luastate/native_names.h"

enum {
	/* Instructions of one function that are decoded; LuaJIT's longest has 5,000. */
	NATIVE_INSNS_MAX = 1 << 15,
	/* Calls and jumps between functions that are kept. LuaJIT has 8,000 of them; the rest of a
	 * large program has some ten times as many. */
	NATIVE_EDGES_MAX = 1 << 19,
	/* Addresses of data in code that are kept. */
	NATIVE_REFERENCES_MAX = 1 << 18,
	/* Places that register a library; LuaJIT has 20. */
	NATIVE_LIBRARIES_MAX = 128,
	/* Built-ins in assembler; LuaJIT has 60. */
	NATIVE_BUILTINS_MAX = 128,
	/* Functions that compiled code calls; builds have 70 to 100. */
	NATIVE_CALLS_MIN = 40,
	NATIVE_CALLS_MAX = 256,
	/* Longest name of a function, with the end. */
	NATIVE_NAME_MAX = 64,
};

/** No function. */
#define NATIVE_NONE UINT32_MAX

/** One function of the file. */
struct native_function {
	uint64_t start, end;
	uint64_t signature; /* 0: it has none */
	uint32_t first_edge, edge_count;
	uint32_t parent; /* the function to which this cold part belongs; NATIVE_NONE: none */
	const char *name;
	uint8_t how; /* enum luastate_native_how */
	bool is_disputed;
	bool is_called;	 /* directly */
	bool is_certain; /* LuaJIT's, by something other than its place */
	bool is_foreign; /* a symbol says that it is not LuaJIT's */
	bool is_vm;
};

/** How control goes from one function to another. */
enum native_edge_kind {
	NATIVE_EDGE_CALL,
	NATIVE_EDGE_JUMP,
	NATIVE_EDGE_BRANCH,  /* conditional */
	NATIVE_EDGE_ADDRESS, /* an instruction has the function's address as operand */
};

struct native_edge {
	uint32_t target; /* a function; NATIVE_NONE: another file's, by the linkage table */
	uint32_t into;	 /* offset in it */
	uint8_t kind;	 /* enum native_edge_kind */
};

/** A call with three addresses as arguments 2 to 4, as lj_lib_register(L, name, init, functions).
 */
struct native_registration {
	uint64_t arguments[3]; /* 0: not known */
	uint32_t callee;
};

/** A built-in in assembler. */
struct native_builtin {
	char name[NATIVE_NAME_MAX]; /* as string_reverse */
	uint8_t index;		    /* behind the opcodes in the dispatch table */
};

struct native {
	const struct luastate_module *module;
	struct native_function *functions;
	size_t count;
	uint32_t interpreter; /* its index; NATIVE_NONE: it has no entry of its own */
	struct native_edge *edges;
	size_t edge_count, edge_room;
	struct native_registration registrations[NATIVE_LIBRARIES_MAX];
	size_t registration_count;
	struct native_builtin builtins[NATIVE_BUILTINS_MAX];
	size_t builtin_count;
	uint64_t *references; /* addresses of data in code, sorted */
	size_t reference_count, reference_room;
	struct luastate_native_calls calls;
	uint64_t called[NATIVE_CALLS_MAX]; /* the functions of calls */
	char **names;			   /* those that are not static */
	size_t name_count, name_room;
};

/* ---- Code ------------------------------------------------------------------------------- */

enum native_insn_kind {
	NATIVE_OTHER,
	NATIVE_CALL,
	NATIVE_JUMP,
	NATIVE_BRANCH,	 /* conditional */
	NATIVE_INDIRECT, /* a jump by register or memory, or a return */
	NATIVE_SET,	 /* sets an argument's register to an address */
};

/** One instruction, as far as this folder needs it. */
struct native_insn {
	uint8_t len, kind;
	uint8_t argument;   /* of NATIVE_SET, from 0 */
	uint16_t operation; /* without operands; 0: it only fills space */
	uint64_t target;    /* of calls, jumps and branches; the value of NATIVE_SET */
	uint64_t reference; /* the address that it has as operand, 0: none */
};

/** What an instruction decoder remembers from one instruction to the next. */
struct native_decoder {
	uint64_t pages[32]; /* AArch64: upper parts of addresses, by register; 0: unknown */
};

/**
 * Decode an instruction; each architecture has an implementation.
 * @param address Of the first byte.
 * @param decoder Zeroed at the beginning of each function.
 */
bool native_decode(struct native_decoder *decoder, const uint8_t *code, size_t len,
		   uint64_t address, struct native_insn *ret_insn);

/** The bytes at an address, and how many follow in its part. @return NULL if they are not copied.
 */
const uint8_t *native_bytes(const struct native *native, uint64_t address, size_t *ret_len);

/** Read a word of data. @return false if it is not copied. */
bool native_read_u64(const struct native *native, uint64_t address, uint64_t *ret_value);

/** The function that contains an address, or NATIVE_NONE. */
uint32_t native_function_at(const struct native *native, uint64_t address);

/** The function that begins at an address, or NATIVE_NONE. */
uint32_t native_function_from(const struct native *native, uint64_t address);

/** Decode all functions: their signatures, edges, references and registrations. @return false when
 * out of memory. */
bool native_read_functions(struct native *native);

/* ---- Evidence --------------------------------------------------------------------------- */

/**
 * Give a function a name by some evidence. If another evidence gave it another name, it loses both
 * for good.
 * @param name Static, or by native_keep_name(); NULL, when out of memory, is ignored.
 */
void native_claim(struct native *native, uint32_t function, const char *name,
		  enum luastate_native_how how);

/** Keep a name. @return NULL when out of memory. */
const char *native_keep_name(struct native *native, const char *name);

/** Name the functions that LuaJIT's tables contain. */
void native_take_libraries(struct native *native);
/** @param closeuv lj_func_closeuv(), which one of the collector's functions calls; NATIVE_NONE: not
 * known. */
void native_take_free_functions(struct native *native, uint32_t closeuv);

/** Name what the interpreter's code calls, and what is named by it. */
void native_take_calls(struct native *native);

/** Name the functions that compiled code calls, if a known build has the same table of them. */
void native_take_call_list(struct native *native);

/** Continue a hash (FNV-1a) by some bytes; NATIVE_HASH_BEGIN begins one. */
#define NATIVE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
static inline uint64_t native_hash(uint64_t hash, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		hash = (hash ^ (value >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

/** Decide which functions are LuaJIT's, by those that are certain. */
void native_take_span(struct native *native);

/** Name LuaJIT's functions by their instructions. */
void native_take_signatures(struct native *native);

#endif
