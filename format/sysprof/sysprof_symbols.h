/* SPDX-License-Identifier: MIT */
/* Private to format: which frame has which number in a stream. */
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
	uint64_t number; /**< 0: none is known. */
};

/** Frames whose numbers are kept at hand; a power of 2. */
#define SYSPROF_SYMBOLS_KNOWN 1024

/** A Lua function, as a chain runs it. */
struct sysprof_symbols_lua {
	uint32_t function;
	struct label_mark mark;
	uint64_t proto;	    /* Its number; 0: it has none yet. */
	uint64_t next, end; /* Numbers that are left for its lines. */
	uint32_t line_count;
};

/**
 * The symbol records that a sysprof stream holds so far, and from that the number to write for a
 * frame in place of its address. A record is put into the stream before its first use, and stands.
 */
struct sysprof_symbols {
	struct format_sink *sink;
	const struct format_functions *functions;
	uint64_t next[SYMBOL_PLACES][SYMBOL_RANGES]; /* Number of each range; 0: its first. */
	struct format_addrmap hosts; /* Function, and whether its name is altered, to its number. */
	struct format_addrmap protos;	 /* Function and mark to the index in `luas`. */
	struct format_addrmap lines;	 /* Index in `luas` and line to the number. */
	struct format_addrmap starts;	 /* Lua function, or trace, to its prototype's number. */
	struct format_addrmap addresses; /* Of a prototype to a function that `starts` has. */
	struct format_addrmap traces;	 /* Number of a trace to id of its function. */
	struct sysprof_symbols_lua *luas;
	size_t lua_count, lua_capacity;
	bool has_trigger;
	struct format_text scratch;
	struct sysprof_symbols_known known[SYSPROF_SYMBOLS_KNOWN];
};

/**
 * Begins with the record that says that addresses are numbers.
 * @param sink, functions Borrowed until sysprof_symbols_deinit(), which is to be called in any
 * case.
 * @param why             FAILURE_NO_MEMORY, as of all functions below; these also FAILURE_LIMIT
 * where no number is left.
 * @return 0 or -1.
 */
int sysprof_symbols_init(struct sysprof_symbols *symbols, struct format_sink *sink,
			 const struct format_functions *functions, struct failure *why);
void sysprof_symbols_deinit(struct sysprof_symbols *symbols);

/** Have the prototype of a Lua frame's function in the stream, with the function's name.
 *  @param ret_number Its number; undefined after a failure, as all that functions below give. */
int sysprof_symbols_use_proto(struct sysprof_symbols *symbols, const struct format_frame *frame,
			      uint64_t *ret_number, struct failure *why);

/** Have trace function @p id in the stream as a trace symbol.
 *  @param ret_proto A prototype with the chunk name of that in which it starts.
 *  @param ret_line  That one's first line. */
int sysprof_symbols_use_trace(struct sysprof_symbols *symbols, uint32_t id, uint64_t *ret_proto,
			      int64_t *ret_line, struct failure *why);

/**
 * Have the frame's symbol in the stream.
 * @param line	       Line to show for a Lua function.
 * @param may_trigger  Keep a name that makes the reference's merge act; those of Lua functions
 *		       are always altered.
 * @param ret_number   Of just this symbol.
 */
int sysprof_symbols_use_host(struct sysprof_symbols *symbols, const struct format_frame *frame,
			     int64_t line, bool may_trigger, uint64_t *ret_number,
			     struct failure *why);

/** Have the synthetic trigger in the stream. */
int sysprof_symbols_use_trigger(struct sysprof_symbols *symbols, uint64_t *ret_number,
				struct failure *why);

#endif
