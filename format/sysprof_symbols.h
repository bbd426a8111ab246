/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_SYSPROF_SYMBOLS_H
#define FORMAT_SYSPROF_SYMBOLS_H

#include "format/addrmap.h"
#include "format/intern.h"
#include "format/text.h"

/** A frame and its address in the stream, which holds as long as no record is put. */
struct sysprof_symbols_known {
	struct format_frame frame;
	int64_t line;
	bool may_trigger;
	uint64_t until;	  /**< Generation + 1; 0: none is known. */
	uint64_t address; /**< In the stream. */
};

/** Frames whose addresses are kept; a power of 2. */
#define SYSPROF_SYMBOLS_KNOWN 1024

/**
 * The symbol records that a sysprof stream holds so far, as its readers see them, and from that the
 * address to write for a frame. A record is put into the stream before its first use and again only
 * when another one has taken its place.
 */
struct sysprof_symbols {
	struct format_sink *sink;
	const struct format_functions *functions;
	struct format_intern *texts;	/* Names of C symbols. */
	struct format_addrmap symbols;	/* C symbol address to id of its text. */
	struct format_addrmap protos;	/* Prototype address to id of its function. */
	struct format_addrmap lows;	/* Id of a text to its low address. */
	struct format_addrmap traces;	/* Number to id of its function. */
	struct format_addrmap compiled; /* Function and mark to the prototype of such frames. */
	uint64_t next_compiled;
	struct format_addrmap bytecode; /* Function and line to the address that stands for it. */
	struct format_text scratch;
	uint64_t next_low;
	uint64_t generation; /* Grows with each record: older addresses may resolve differently. */
	struct sysprof_symbols_known known[SYSPROF_SYMBOLS_KNOWN];
};

int sysprof_symbols_init(struct sysprof_symbols *symbols, struct format_sink *sink,
			 const struct format_functions *functions, struct failure *why);
void sysprof_symbols_deinit(struct sysprof_symbols *symbols);

/** Have the prototype of a Lua frame's function in the stream, with the function's name. */
int sysprof_symbols_use_proto(struct sysprof_symbols *symbols, const struct format_frame *frame,
			      uint64_t *ret_address, struct failure *why);

/** Have trace function @p id in the stream as a trace symbol.
 *  @param ret_proto The prototype in which it starts, or one that has its chunk name.
 *  @param ret_line  That one's first line. */
int sysprof_symbols_use_trace(struct sysprof_symbols *symbols, uint32_t id, uint64_t *ret_proto,
			      int64_t *ret_line, struct failure *why);

/**
 * Have the frame's symbol in the stream.
 * @param line	       Line to show for a Lua function.
 * @param may_trigger  Keep a name that makes the reference's merge act.
 * @param ret_address  An address that resolves to just this symbol, by the rule "nearest at or
 *		       below, prototypes first".
 */
int sysprof_symbols_use_host(struct sysprof_symbols *symbols, const struct format_frame *frame,
			     int64_t line, bool may_trigger, uint64_t *ret_address,
			     struct failure *why);

/** Have the synthetic trigger in the stream. */
int sysprof_symbols_use_trigger(struct sysprof_symbols *symbols, uint64_t *ret_address,
				struct failure *why);

#endif
