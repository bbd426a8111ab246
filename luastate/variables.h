/* SPDX-License-Identifier: MIT */
/* Which variables does a frame have, and what are their values? */
#ifndef LUASTATE_VARIABLES_H
#define LUASTATE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/stack.h"

struct failure;
struct luastate;
struct luastate_frame;
struct luastate_memory;
struct luastate_values_store;

enum luastate_value_type {
	/** Not in memory: in registers of compiled code, or of a function that is just being
	 *  entered or left. */
	LUASTATE_VALUE_UNAVAILABLE = 0,
	/** Its memory cannot be read, or what is there is no value. */
	LUASTATE_VALUE_UNREADABLE,
	LUASTATE_VALUE_OMITTED, /**< The budget was used up before it. */
	LUASTATE_VALUE_NIL,
	LUASTATE_VALUE_BOOLEAN,
	/** A number that the VM keeps as an integer (dual-number mode), and a place in an array. */
	LUASTATE_VALUE_INTEGER,
	LUASTATE_VALUE_NUMBER,
	LUASTATE_VALUE_STRING,
	LUASTATE_VALUE_TABLE,
	LUASTATE_VALUE_FUNCTION,      /**< In Lua. */
	LUASTATE_VALUE_C_FUNCTION,    /**< Registered by C code. */
	LUASTATE_VALUE_FAST_FUNCTION, /**< LuaJIT's own. */
	LUASTATE_VALUE_COROUTINE,
	LUASTATE_VALUE_USERDATA,
	LUASTATE_VALUE_LIGHTUSERDATA,
	LUASTATE_VALUE_CDATA,
	LUASTATE_VALUE_PROTO, /**< The VM's own; no variable of a program holds these two. */
	LUASTATE_VALUE_TRACE,
	LUASTATE_VALUE_TYPES,
};

/** As Lua's type() names it: "nil", "boolean", "number", "string", "table", "function", "thread",
 * "userdata", "cdata"; further "proto", "trace", "unavailable", "unreadable", "omitted". */
const char *luastate_value_type_name(enum luastate_value_type type);

/** Why the entries of a table are not there, or not all. */
enum luastate_table_cut {
	LUASTATE_TABLE_WHOLE = 0,
	LUASTATE_TABLE_CYCLE,	/**< It is among the tables that hold it. */
	LUASTATE_TABLE_DEPTH,	/**< As deep as was asked for. */
	LUASTATE_TABLE_ENTRIES, /**< Has more than was asked for, or than the budget allows. */
	LUASTATE_TABLE_TORN,	/**< Not all of it could be read. */
};

struct luastate_value;

struct luastate_table {
	uint32_t array_slots, hash_slots; /**< Allocated; slot 0 of the array included. */
	/** Entries that are not nil, of the slots that were read: of all, unless is_count_cut. */
	uint64_t count;
	bool is_count_cut; /**< Too large to be read whole: it has at least that many. */
	bool has_metatable;
	enum luastate_table_cut cut;
	const struct luastate_value *keys, *values; /**< The first ones: array, then hash. */
	size_t entry_count;
};

/** What a cdata object shows of itself. */
enum luastate_cdata_kind {
	LUASTATE_CDATA_OPAQUE = 0, /**< Its type alone: structures, arrays, functions. */
	LUASTATE_CDATA_INTEGER,	   /**< integer: all integers but those of the next; enums. */
	LUASTATE_CDATA_UNSIGNED,   /**< integer, as uint64_t: 64 bits wide and unsigned. */
	LUASTATE_CDATA_BOOLEAN,	   /**< boolean. */
	LUASTATE_CDATA_NUMBER,	   /**< number. */
	LUASTATE_CDATA_POINTER,	   /**< integer, as uint64_t: where it points. */
};

/** What a coroutine is doing: as coroutine.status() says, and two more. */
enum luastate_coroutine_status {
	LUASTATE_COROUTINE_SUSPENDED, /**< Not started, or waits in a yield. Or it was left for
				another native stack in the middle of a C function, as fibers are.
			      */
	LUASTATE_COROUTINE_RUNNING,
	LUASTATE_COROUTINE_NORMAL,  /**< Has resumed another one. */
	LUASTATE_COROUTINE_DEAD,    /**< Has returned, or failed: then its stack is there still. */
	LUASTATE_COROUTINE_IDLE,    /**< A main coroutine of which nothing runs. */
	LUASTATE_COROUTINE_UNKNOWN, /**< In the making, or what is there is no coroutine. */
	LUASTATE_COROUTINE_STATUSES,
};

/** "suspended", "running", ... */
const char *luastate_coroutine_status_name(enum luastate_coroutine_status status);

/** A Lua value. What it points to lives as long as the variables that it is of. */
struct luastate_value {
	enum luastate_value_type type;
	/** Of the object, as tostring() shows it: of userdata and cdata where their contents begin;
	 * light userdata: the pointer. */
	uint64_t address;
	bool boolean;
	int64_t integer; /**< INTEGER; CDATA by cdata_kind. */
	double number;	 /**< NUMBER; CDATA by cdata_kind. */
	/**
	 * STRING: its first bytes, as they are; text_bytes of them, and a zero behind.
	 * Functions: the name if one is known. USERDATA: __name of its metatable. CDATA: its type
	 * in C. NULL: none. All but strings are short, and as untrusted.
	 */
	const char *text;
	size_t text_bytes;
	/** STRING: length. USERDATA, CDATA: size of what it holds. */
	uint64_t size;
	const char *chunkname; /**< FUNCTION: as stored, or NULL. */
	int64_t firstline;     /**< FUNCTION. */
	uint64_t code;	       /**< C_FUNCTION: its entry in machine code. FUNCTION: prototype. */
	enum luastate_coroutine_status status;
	enum luastate_cdata_kind cdata_kind;
	bool has_metatable;		    /**< USERDATA. */
	const struct luastate_table *table; /**< TABLE; NULL where it could not be read. */
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
	/** As stored, or as debug.getlocal() names what has no name: "(for index)", "(*vararg)",
	 * "(*temporary)"; upvalues of stripped functions: "". Untrusted. */
	const char *name;
	unsigned index; /**< From 1 on, within the kind. Parameters and locals are counted together,
			   as debug.getlocal() does. */
	bool is_immutable; /**< Upvalues: never assigned after its initialisation. */
	bool is_open;	   /**< Upvalues: lives in the stack of a function that still runs. */
	struct luastate_value value;
};

/** The variables of one frame: parameters and locals, varargs, upvalues. */
struct luastate_variables {
	const struct luastate_variable *items;
	size_t count;
	/** The function's debug part was stripped: parameters are unnamed, locals are not listed.
	 */
	bool is_stripped;
	/** Runs as machine code: parameters and locals are UNAVAILABLE. */
	bool is_compiled;
	/** The function is being entered or left: parameters are UNAVAILABLE, there are no locals.
	 */
	bool is_between;
	bool is_truncated; /**< There are more: the budget was used up, or they cannot be read. */
	struct luastate_values_store *store; /**< Private. */
};

/** How much to show; and how much may still be used, by all calls that share the options. */
struct luastate_values_options {
	size_t string_bytes;   /**< At most, of each string. */
	unsigned depth;	       /**< Of tables within tables; 0: no entries at all. */
	size_t entries;	       /**< At most, of each table. */
	uint64_t values_left;  /**< Values, those in tables included; goes down. */
	uint64_t memory_bytes; /**< Of our memory for them; goes down. */
	uint64_t read_bytes;   /**< Of the target's memory to be read; goes down. */
	bool is_exhausted;     /**< Something was left out as one of these was used up. */
};

/** Tables within tables are shown no deeper, whatever is asked for: cost multiplies with depth. */
#define LUASTATE_VALUES_DEPTH_MAX 16u

/** What a person can read at one time: lines of a screen's width, a few screens a frame; and so
 * much in all that a dump of thousands of frames remains a file that an editor opens. */
#define LUASTATE_VALUES_DEFAULTS                                      \
	((struct luastate_values_options){ .string_bytes = 80,        \
					   .depth = 1,                \
					   .entries = 8,              \
					   .values_left = 1 << 18,    \
					   .memory_bytes = 256 << 20, \
					   .read_bytes = 256 << 20 })

/**
 * Read the variables of a frame: those that are alive at its position, with their values.
 *
 * Names and lifetimes are those of debug.getlocal() at the same place, with the difference that
 * temporaries, which have no names, are not listed; of a stripped function, all of whose slots have
 * no names, the parameters are. Frames of functions that are not in Lua have none.
 *
 * A value in a slot is read from what the stop copied. What is reachable from it only (tables,
 * strings, closed upvalues) may come from memory->any and be a moment younger, unless that is a
 * copy or the process is held; what was freed meanwhile is UNREADABLE. Slots of compiled code
 * are stale and never read, also those to which upvalues of other functions point.
 *
 * Stopped window: may be called in one, costs some microseconds a variable over a copy.
 * @param frame         Of a chain; its function is known to @p state.
 * @param options       What is left of the budget is updated.
 * @param ret_variables Release with luastate_variables_destroy().
 * @param why           FAILURE_NO_MEMORY; FAILURE_NOT_FOUND: the frame's VM or function is not
 *                      known; or a read's failure.
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
