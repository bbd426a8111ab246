/* SPDX-License-Identifier: MIT */
/* What is a sample, and what are the functions in its chain? */
#ifndef FORMAT_SAMPLE_H
#define FORMAT_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/failure.h"

/**
 * What the VM does. The numbers are those of a sysprof stream's sample header.
 * Source: tarantool/luajit b52fe979, src/lj_obj.h (LJ_VMST_*) and src/lj_sysprof.h.
 * Mainline's single state C is FORMAT_STATE_CFUNC; its INTERP stays FORMAT_STATE_INTERP.
 */
enum format_state {
	FORMAT_STATE_INTERP = 0,
	FORMAT_STATE_LFUNC = 1,
	FORMAT_STATE_FFUNC = 2,
	FORMAT_STATE_CFUNC = 3,
	FORMAT_STATE_GC = 4,
	FORMAT_STATE_EXIT = 5,
	FORMAT_STATE_RECORD = 6,
	FORMAT_STATE_OPT = 7,
	FORMAT_STATE_ASM = 8,
	FORMAT_STATE_TRACE = 9,
	FORMAT_STATE_COUNT = 10,
};

/** Upper-case name of a state, spelled as in Tarantool's counters ("INTERP", …, "TRACE"). */
const char *format_state_name(enum format_state state);

/** What kind of code a function is. */
enum format_kind {
	FORMAT_KIND_NATIVE = 0, /**< Machine code that is neither a Lua C function nor LuaJIT's. */
	FORMAT_KIND_LUA,	/**< Lua function in bytecode. */
	FORMAT_KIND_BUILTIN,	/**< Built-in: a function of LuaJIT's own libraries. */
	FORMAT_KIND_CFUNC,	/**< lua_CFunction of an application or module. */
	FORMAT_KIND_TRACE,	/**< Compiled trace. */
	FORMAT_KIND_PSEUDO,	/**< Not code but VM work, such as "[gc sweep]". */
	FORMAT_KIND_PROCESS,	/**< Not code but the process of the chain. */
	FORMAT_KIND_VM,		/**< Machine code of LuaJIT itself, its C API included. */
	FORMAT_KIND_COUNT,
};

/** @return The name of a kind for people: "native", "Lua", … */
const char *format_kind_name(enum format_kind kind);

/** @return Whether functions of the kind are machine code that Lua does not call by name. */
static inline bool format_kind_is_native(enum format_kind kind)
{
	return kind == FORMAT_KIND_NATIVE || kind == FORMAT_KIND_VM;
}

/** @return @p part in percent of @p whole; 0 if there are no samples. */
double format_percent(uint64_t part, uint64_t whole);

/**
 * Where a process maps a part of a file that holds code.
 * Address a in the mapping is at `offset` + a - `start` in the file.
 */
struct format_mapping {
	uint64_t start, limit; /**< [start, limit); both 0: unknown. */
	uint64_t offset;       /**< Bytes, in the file. */
	const char *path;      /**< Path as the process sees it, or "[vdso]"; never NULL. */
	const char *build_id;  /**< In hexadecimal digits, or NULL. */
};

/**
 * A function; frames refer to it by its id. All strings are borrowed for the call only.
 *
 * kind     address                    name                          source      first_line
 * NATIVE   start of the function      symbol, or "module+0xOFFSET"  module      0
 * LUA      the prototype (GCproto)    from a call site, or NULL     chunk name  as in GCproto
 * BUILTIN  a unique code address      "string.gsub"                 NULL        0
 * CFUNC    the lua_CFunction          symbol or table name          NULL        0
 * TRACE    the trace number           NULL                          chunk name  start line
 * PSEUDO   0                          "[gc sweep]"                  NULL        0
 * PROCESS  the pid                    "nginx [4711]"                NULL        0
 * VM       as NATIVE
 *
 * Chains of several processes may be mixed. An address belongs to the sample's own process; two
 * processes can have different functions at the same address. The chunk name is as the VM stores it
 * ("@file.lua", "=name", or source text). first_line is -1 for built-in functions in bytecode and 0
 * for a main chunk.
 */
struct format_function {
	enum format_kind kind;
	uint64_t address;
	const char *name;
	const char *source;
	int64_t first_line;
	/** TRACE: the prototype in which the trace starts, 0 if unknown, and its first line. */
	uint64_t proto;
	int64_t proto_line;
	/** NATIVE, VM and CFUNC: the mapping that contains `address`, or NULL. Borrowed for the
	 * call only. */
	const struct format_mapping *mapping;
	/** NATIVE, VM and CFUNC: the source file if it is known (foreign profiles have it), with
	 * first_line set; or NULL. */
	const char *file;
};

/** One frame of a sample. */
struct format_frame {
	uint64_t address;  /**< NATIVE and VM: the pc; LUA: address of the current bytecode; other
			      kinds: the function's address. */
	uint32_t function; /**< Id given by format_functions_add(). */
	uint32_t line;	   /**< Current line; 0 if unknown. */
	uint32_t trace;	   /**< LUA and FAST: the trace whose machine code runs the frame; 0 if
			      interpreted. */
	bool approximate;  /**< The frame is near the truth but not certain. */
};

/** How well the location in compiled code is known. */
enum format_compiled {
	FORMAT_COMPILED_NONE = 0,    /**< No compiled code runs. */
	FORMAT_COMPILED_EXACT,	     /**< The chain is known down to the inlined leaf. */
	FORMAT_COMPILED_APPROXIMATE, /**< The same, but the thread may already be in the next
					frames. */
	FORMAT_COMPILED_TRACE,	     /**< Only the trace is known: the leaf is a TRACE frame. */
	FORMAT_COMPILED_COUNT,
};

/** Used instead of an id: no function. */
#define FORMAT_NO_FUNCTION UINT32_MAX

/** A coroutine on a call chain. */
struct format_coroutine {
	uint64_t address; /**< Address of its lua_State. */
	/** Id of the function at its root: the function that it began with, or that one's tail
	 * callee. FORMAT_NO_FUNCTION if unknown, or for the main coroutine, which begins anew
	 * with each call from C. */
	uint32_t function;
	bool is_main; /**< The main coroutine of its VM. */
};

/** Most coroutines that one sample lists: the newest ones. */
enum { FORMAT_COROUTINES_MAX = 32 };

/**
 * One call chain. `frames` run from leaf to root. `frames` and `coroutines` are borrowed.
 * `trace` is the number of the running trace in state FORMAT_STATE_TRACE, or of the trace that
 * called the running code.
 */
struct format_sample {
	uint64_t time_ns; /**< CLOCK_MONOTONIC. */
	int32_t pid, tid;
	const char *thread;	 /**< Thread name, or NULL; may contain any bytes. */
	enum format_state state; /**< The VM's true state. */
	uint32_t trace;
	/** The start of `trace` as a function, or FORMAT_NO_FUNCTION if unknown. */
	uint32_t trace_function;
	enum format_compiled compiled;
	uint32_t weight; /**< Ticks that this sample represents; 1 unless ticks were merged. */
	/** Bytes in use by the VM's collector at the time of the sample; 0: unknown. */
	uint64_t heap_bytes;
	bool full;	/**< The chain reaches from the leaf to the thread's first function. */
	bool is_asleep; /**< The thread waited in a system call or for memory. */
	const struct format_frame *frames;
	uint32_t frame_count;
	const struct format_coroutine
		*coroutines; /**< Newest first, at most FORMAT_COROUTINES_MAX. */
	uint32_t coroutine_count;
};

/* ---- Function table --------------------------------------------------------------------- */

/** Functions by id, in the order of first appearance. Owns copies of all strings. */
struct format_functions;

struct format_functions *format_functions_create(void);
void format_functions_destroy(struct format_functions *functions);

/**
 * Store a copy of @p function under the next id (0, 1, …). Does not search for an equal function.
 * @return 0, or -1 with FAILURE_NO_MEMORY or FAILURE_LIMIT.
 */
int format_functions_add(struct format_functions *functions, const struct format_function *function,
			 uint32_t *ret_id, struct failure *why);

/**
 * Replace the name of a function with a copy of @p name.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int format_functions_rename(struct format_functions *functions, uint32_t id, const char *name,
			    struct failure *why);

/** @return The function, borrowed until the table is destroyed; NULL for an unknown id. */
const struct format_function *format_functions_get(const struct format_functions *functions,
						   uint32_t id);
uint32_t format_functions_count(const struct format_functions *functions);

#endif
