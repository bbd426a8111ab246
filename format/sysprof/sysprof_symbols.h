/* SPDX-License-Identifier: MIT */
/* Private to format: which number does a frame have in a stream? */
#ifndef FORMAT_SYSPROF_SYSPROF_SYMBOLS_H
#define FORMAT_SYSPROF_SYSPROF_SYMBOLS_H

#include "format/data/map.h"
#include "format/sysprof/symbol_encoding.h"
#include "format/writer.h"

/** A frame and its number in the stream. */
struct sysprof_symbols_known {
	uint32_t function, trace;
	int64_t line;
	bool approximate, may_trigger;
	uint64_t number; /**< 0: unknown. */
};

/** Size of the cache from frames to numbers; a power of 2. */
#define SYSPROF_SYMBOLS_KNOWN 1024

/** A Lua function and how it runs. */
struct sysprof_symbols_lua {
	uint32_t function;
	struct label_mark mark;
	uint64_t proto;	    /* Its number; 0: none yet. */
	uint64_t next, end; /* Reserved numbers for its lines. */
	uint32_t line_count;
};

/** The symbol records in a sysprof stream so far, and the number that replaces a frame's address.
 * A record is in the stream before its first use and never changes. */
struct sysprof_symbols {
	struct format_sink *sink;
	const struct format_functions *functions;
	uint64_t next[SYMBOL_LOCATIONS]
		     [SYMBOL_RANGES]; /* Next number in each range; 0: the range's first. */
	struct format_addrmap
		hosts; /* From function, and whether its name is altered, to its number. */
	struct format_addrmap protos;	 /* From function and mark to the index in `luas`. */
	struct format_addrmap lines;	 /* From index in `luas` and line to the number. */
	struct format_addrmap starts;	 /* From Lua function or trace to its prototype's number. */
	struct format_addrmap addresses; /* From a prototype's address to a function in `starts`. */
	struct format_addrmap traces;	 /* From a trace number to the id of its function. */
	struct sysprof_symbols_lua *luas;
	size_t lua_count, lua_capacity;
	bool has_trigger;
	struct format_text scratch, module; /* module: the last one put. */
	struct sysprof_symbols_known known[SYSPROF_SYMBOLS_KNOWN];
};

/**
 * Put the record that says that addresses are numbers.
 * @param sink Borrowed until sysprof_symbols_deinit(), which must be called also on failure.
 * @param functions Borrowed for as long.
 * @param why FAILURE_NO_MEMORY, here and in all functions below; below also FAILURE_LIMIT if no
 * number is left.
 * @return 0 or -1.
 */
int sysprof_symbols_init(struct sysprof_symbols *symbols, struct format_sink *sink,
			 const struct format_functions *functions, struct failure *why);
void sysprof_symbols_deinit(struct sysprof_symbols *symbols);

/**
 * Put the prototype of a Lua frame's function, with the function's name, if it is not yet in the
 * stream.
 * @param ret_number Its number. Undefined after a failure, also in the functions below.
 */
int sysprof_symbols_use_proto(struct sysprof_symbols *symbols, const struct format_frame *frame,
			      uint64_t *ret_number, struct failure *why);

/**
 * Put trace function @p id as a trace symbol, if it is not yet in the stream.
 * @param ret_proto A prototype with the chunk name of the function in which the trace starts.
 * @param ret_line First line of that function.
 */
int sysprof_symbols_use_trace(struct sysprof_symbols *symbols, uint32_t id, uint64_t *ret_proto,
			      int64_t *ret_line, struct failure *why);

/**
 * Put the frame's symbol, if it is not yet in the stream.
 * @param line Line to show for a Lua function.
 * @param may_trigger Keep a name that is a trigger for Tarantool's merge. Names of Lua functions
 * are always altered.
 * @param ret_number Number of exactly this symbol.
 */
int sysprof_symbols_use_host(struct sysprof_symbols *symbols, const struct format_frame *frame,
			     int64_t line, bool may_trigger, uint64_t *ret_number,
			     struct failure *why);

/** Put the synthetic trigger, if it is not yet in the stream. */
int sysprof_symbols_use_trigger(struct sysprof_symbols *symbols, uint64_t *ret_number,
				struct failure *why);

#endif
