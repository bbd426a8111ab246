/* SPDX-License-Identifier: MIT */
/* What are the records of a sysprof or memprof stream? */
#ifndef FORMAT_STREAM_H
#define FORMAT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/writer.h"

enum format_stream_kind { FORMAT_STREAM_SYSPROF, FORMAT_STREAM_MEMPROF };

/** One frame of a Lua stack in a sysprof stream. */
struct format_lua_frame {
	uint8_t kind;	  /**< 1 Lua, 2 C, 3 fast function. */
	uint64_t address; /**< Prototype, C function, or fast-function id. */
	uint64_t line;	  /**< Kind 1 only. */
};

/** One sysprof sample as the stream has it, both stacks leaf first. */
struct format_raw_sample {
	enum format_state state;
	uint64_t trace, trace_proto, trace_line; /**< State TRACE only. */
	const struct format_lua_frame *lua;
	size_t lua_count;
	const uint64_t *host;
	size_t host_count;
	bool is_offered; /**< The visitor was asked about its record just before. */
};

/** One memprof event. */
struct format_raw_event {
	uint8_t kind;	  /**< 1 alloc, 2 free, 3 realloc. */
	uint8_t source;	  /**< 1 internal, 2 Lua function, 3 C function, 4 trace. */
	uint64_t address; /**< Prototype, C function or trace number. */
	uint64_t line;	  /**< Source 2 only. */
	uint64_t old_address, old_size, new_address, new_size;
};

/** Symbol records; strings are borrowed for the call and not terminated. In streams of ours
 * addresses are numbers: format/sysprof/symbol_encoding.h. */
struct format_symbol {
	enum { FORMAT_SYMBOL_LUA, FORMAT_SYMBOL_C, FORMAT_SYMBOL_TRACE } kind;
	uint64_t address; /**< Prototype, C address; for a trace its start prototype. */
	uint64_t trace;	  /**< Trace number. */
	uint64_t line;	  /**< First line (Lua), start line (trace). */
	const char *name; /**< Chunk name or C symbol. */
	size_t name_len;
};

/** What a reader calls for each record in stream order; NULL members are skipped.
 *  A callback that returns non-zero ends the reading with that value's failure. */
struct format_visitor {
	int (*symbol)(void *context, const struct format_symbol *symbol, struct failure *why);
	int (*sample)(void *context, const struct format_raw_sample *sample, struct failure *why);
	int (*event)(void *context, const struct format_raw_event *event, struct failure *why);
	/** Of a sample that is not decoded yet: its record, borrowed for the call. Whoever knows
	 * these bytes from an earlier sample sets @p ret_done, and is spared the other call. */
	int (*repeat)(void *context, const uint8_t *bytes, size_t len, bool *ret_done,
		      struct failure *why);
};

/**
 * Read one whole stream (symtab and its sysprof or memprof part).
 * @param why On failure FAILURE_INVALID with the byte offset in `address`, or FAILURE_SYSTEM.
 */
int format_read_stream(FILE *file, const struct format_visitor *visitor, void *context,
		       enum format_stream_kind *ret_kind, struct failure *why);

/** The same over bytes in memory. */
int format_read_bytes(const void *bytes, size_t len, const struct format_visitor *visitor,
		      void *context, enum format_stream_kind *ret_kind, struct failure *why);

/** Record-level writers: append one record's bytes to the sink. */
int format_put_prologue(struct format_sink *sink, enum format_stream_kind kind,
			struct failure *why);
int format_put_symtab_prologue(struct format_sink *sink, struct failure *why);
int format_put_symtab_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			     struct failure *why);
int format_put_symtab_end(struct format_sink *sink, struct failure *why);
int format_put_symbol(struct format_sink *sink, const struct format_symbol *symbol,
		      struct failure *why);
int format_put_sample(struct format_sink *sink, const struct format_raw_sample *sample,
		      struct failure *why);
/** For memprof: a symbol update and an event. */
int format_put_event_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			    struct failure *why);
int format_put_event(struct format_sink *sink, const struct format_raw_event *event,
		     struct failure *why);

#endif
