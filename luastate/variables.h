/* SPDX-License-Identifier: MIT */
/* Which variables does a frame have, and what are their values? */
#ifndef LUASTATE_VARIABLES_H
#define LUASTATE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/stack.h"

struct luastate_values_store;

enum luastate_value_type {
	/** Not in memory: in registers of compiled code, or in those of a function that is being
	 * entered or left. */
	LUASTATE_VALUE_UNAVAILABLE = 0,
	/** Its memory cannot be read, or does not hold a value. */
	LUASTATE_VALUE_UNREADABLE,
	LUASTATE_VALUE_OMITTED, /**< The budget was exhausted before it. */
	LUASTATE_VALUE_NIL,
	LUASTATE_VALUE_BOOLEAN,
	/** A number that the VM stores as an integer (dual-number mode), or an index of an array.
	 */
	LUASTATE_VALUE_INTEGER,
	LUASTATE_VALUE_NUMBER,
	LUASTATE_VALUE_STRING,
	LUASTATE_VALUE_TABLE,
	LUASTATE_VALUE_FUNCTION,   /**< Written in Lua. */
	LUASTATE_VALUE_C_FUNCTION, /**< Registered by C code. */
	LUASTATE_VALUE_BUILTIN,	   /**< A built-in. */
	LUASTATE_VALUE_COROUTINE,
	LUASTATE_VALUE_USERDATA,
	LUASTATE_VALUE_LIGHTUSERDATA,
	LUASTATE_VALUE_CDATA,
	LUASTATE_VALUE_PROTO, /**< Internal to the VM; no variable of a program holds this or the
				 next type. */
	LUASTATE_VALUE_TRACE,
	LUASTATE_VALUE_TYPES,
};

/** As Lua's type() names it: "nil", "boolean", "number", "string", "table", "function", "thread",
 * "userdata", "cdata"; in addition "proto", "trace", "unavailable", "unreadable", "omitted". */
const char *luastate_value_type_name(enum luastate_value_type type);

/** Why entries of a table are missing. */
enum luastate_table_cut {
	LUASTATE_TABLE_WHOLE = 0,
	LUASTATE_TABLE_CYCLE,	/**< The table is among the tables that contain it. */
	LUASTATE_TABLE_DEPTH,	/**< The requested depth is reached. */
	LUASTATE_TABLE_ENTRIES, /**< It has more entries than requested, or than the budget allows.
				 */
	LUASTATE_TABLE_INCONSISTENT, /**< Not all of it could be read. */
};

struct luastate_value;

struct luastate_table {
	uint32_t array_slots, hash_slots; /**< Allocated; slot 0 of the array included. */
	/** Number of entries that are not nil, among the slots that were read. */
	uint64_t count;
	bool is_count_cut; /**< The table is too large to read completely; it has at least `count`
			      entries. */
	bool has_metatable;
	enum luastate_table_cut cut;
	const struct luastate_value *keys, *values; /**< The first entries: array, then hash. */
	size_t entry_count;
};

/** What a cdata object shows of its value. */
enum luastate_cdata_kind {
	LUASTATE_CDATA_OPAQUE = 0, /**< Only its type: structures, arrays, functions. */
	LUASTATE_CDATA_INTEGER,	 /**< In `integer`: enums, and integers that are not unsigned 64-bit
				    ones. */
	LUASTATE_CDATA_UNSIGNED, /**< In `integer`, as uint64_t: unsigned 64-bit integers. */
	LUASTATE_CDATA_BOOLEAN,	 /**< In `boolean`. */
	LUASTATE_CDATA_NUMBER,	 /**< In `number`. */
	LUASTATE_CDATA_POINTER,	 /**< In `integer`, as uint64_t: the address that it points to. */
};

/** Status of a coroutine, as coroutine.status() reports it, and two more. */
enum luastate_coroutine_status {
	LUASTATE_COROUTINE_SUSPENDED, /**< Not started, or waiting in a yield. Or its thread left it
					 for another native stack in the middle of a C function, as
					 with fibers. */
	LUASTATE_COROUTINE_RUNNING,
	LUASTATE_COROUTINE_NORMAL,  /**< Has resumed another coroutine. */
	LUASTATE_COROUTINE_DEAD,    /**< Has returned, or has failed and still has its stack. */
	LUASTATE_COROUTINE_IDLE,    /**< A main coroutine in which nothing runs. */
	LUASTATE_COROUTINE_UNKNOWN, /**< Being created, or the memory holds no coroutine. */
	LUASTATE_COROUTINE_STATUSES,
};

/** "suspended", "running", ... */
const char *luastate_coroutine_status_name(enum luastate_coroutine_status status);

/** A Lua value. It points to data that lives as long as the variables that contain the value. */
struct luastate_value {
	enum luastate_value_type type;
	/** Address of the object, as tostring() shows it. Userdata and cdata: start of the
	 * contents. Light userdata: the pointer. */
	uint64_t address;
	bool boolean;
	int64_t integer; /**< INTEGER; CDATA depending on cdata_kind. */
	double number;	 /**< NUMBER; CDATA depending on cdata_kind. */
	/**
	 * STRING: its first text_bytes bytes, unchanged, with a zero byte after them. Functions:
	 * the name if known. USERDATA: __name of its metatable. CDATA: its type in C. Others: NULL.
	 * All texts are untrusted; all except strings are short.
	 */
	const char *text;
	size_t text_bytes;
	/** STRING: length. USERDATA, CDATA: size of the contents. */
	uint64_t size;
	const char *chunkname; /**< FUNCTION: as stored, or NULL. */
	int64_t firstline;     /**< FUNCTION. */
	uint64_t code;	       /**< C_FUNCTION: its entry in machine code. FUNCTION: prototype. */
	enum luastate_coroutine_status status;
	enum luastate_cdata_kind cdata_kind;
	bool has_metatable;		    /**< USERDATA. */
	const struct luastate_table *table; /**< TABLE; NULL if it could not be read. */
};

enum luastate_variable_kind {
	LUASTATE_PARAMETER,
	LUASTATE_LOCAL,
	LUASTATE_VARARG,
	LUASTATE_UPVALUE,
	LUASTATE_VARIABLE_KINDS,
};

/** "parameter", "local", "vararg", "upvalue". */
const char *luastate_variable_kind_name(enum luastate_variable_kind kind);

struct luastate_variable {
	enum luastate_variable_kind kind;
	/** As stored, or as debug.getlocal() names an unnamed one: "(for index)", "(*vararg)",
	 * "(*temporary)"; "" for upvalues of stripped functions. Untrusted. */
	const char *name;
	unsigned index;	   /**< Starts at 1 within the kind. Parameters and locals are counted
			      together, as in debug.getlocal(). */
	bool is_immutable; /**< Upvalues: not assigned after initialisation. */
	bool is_open;	   /**< Upvalues: in the stack of a function that still runs. */
	struct luastate_value value;
};

/** The variables of one frame: parameters and locals, varargs, upvalues. */
struct luastate_variables {
	const struct luastate_variable *items;
	size_t count;
	/** The function's debug part is stripped: parameters have no names, locals are not
	 * listed. */
	bool is_stripped;
	/** Runs as machine code: parameters and locals are UNAVAILABLE. */
	bool is_compiled;
	/** The function is being entered or left: parameters are UNAVAILABLE, and there are no
	 * locals. */
	bool is_between;
	bool is_truncated; /**< There are more, but the budget is exhausted, or they cannot be read.
			    */
	struct luastate_values_store *store; /**< Private. */
};

/** Limits of what to show, and the budget left for all calls that share these options. */
struct luastate_values_options {
	size_t string_bytes;   /**< Maximum for each string. */
	unsigned depth;	       /**< Depth of tables within tables; 0: no entries at all. */
	size_t entries;	       /**< Maximum for each table. */
	uint64_t values_left;  /**< Values left, including values in tables. */
	uint64_t memory_bytes; /**< Bytes of our own memory left. */
	uint64_t read_bytes;   /**< Bytes of the target's memory that may still be read. */
	bool is_exhausted; /**< Something was left out because one of these budgets is exhausted. */
};

/** Maximum depth of tables within tables, whatever the request, because cost multiplies with
 * depth. */
#define LUASTATE_VALUES_DEPTH_MAX 16u

/** A person can read this at once: one line of screen width per string, a few screens per frame.
 * The totals keep a dump of thousands of frames small enough for an editor. */
#define LUASTATE_VALUES_DEFAULTS                                      \
	((struct luastate_values_options){ .string_bytes = 80,        \
					   .depth = 1,                \
					   .entries = 8,              \
					   .values_left = 1 << 18,    \
					   .memory_bytes = 256 << 20, \
					   .read_bytes = 256 << 20 })

/**
 * Read the variables of a frame that are alive at its position, with their values.
 *
 * Names and lifetimes are those of debug.getlocal() at the same location, except that temporaries,
 * which have no names, are not listed. In a stripped function no slot has a name; its parameters
 * are listed. Frames of functions that are not written in Lua have no variables.
 *
 * A value in a slot comes from what the stop copied. Values that are reachable only through it
 * (tables, strings, closed upvalues) may come from memory->any and be slightly newer, unless that
 * is a copy or the process is frozen. Values that were freed meanwhile are UNREADABLE. Slots of
 * compiled code are stale and never read, even if upvalues of other functions point to them.
 *
 * Stopped window: allowed; costs some microseconds for each variable over a copy.
 * @param frame         Frame of a chain; @p state knows its function.
 * @param options       The budget left is updated.
 * @param ret_variables Release with luastate_variables_destroy().
 * @param why           FAILURE_NO_MEMORY; FAILURE_NOT_FOUND: the frame's VM or function is not
 * known; or a read's failure.
 * @return 0 or -1.
 * Source: LuaJIT v2.1 src/lj_debug.c (debug_framepc, debug_varname, debug_localname,
 * lj_debug_uvname), src/lj_obj.h, src/lj_ctype.h, src/lj_ctype.c (lj_ctype_repr).
 */
int luastate_read_variables(struct luastate *state, const struct luastate_memory *memory,
			    const struct luastate_frame *frame,
			    struct luastate_values_options *options,
			    struct luastate_variables **ret_variables, struct failure *why);
void luastate_variables_destroy(struct luastate_variables *variables);

#endif
