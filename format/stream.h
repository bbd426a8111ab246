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
	uint8_t kind;	  /**< 1 Lua, 2 C, 3 built-in. */
	uint64_t address; /**< Prototype, C function, or built-in's id. */
	uint64_t line;	  /**< Kind 1 only. */
};

/** One sysprof sample as stored in the stream; both stacks leaf first. */
struct format_raw_sample {
	enum format_state state;
	uint64_t trace, trace_proto, trace_line; /**< State TRACE only. */
	const struct format_lua_frame *lua;
	size_t lua_count;
	const uint64_t *host;
	size_t host_count;
	bool is_offered; /**< The visitor's repeat() already saw this record. */
};

/** One memprof event. */
struct format_raw_event {
	uint8_t kind;	  /**< 1 alloc, 2 free, 3 realloc. */
	uint8_t source;	  /**< 1 internal, 2 Lua function, 3 C function, 4 trace. */
	uint64_t address; /**< Prototype, C function or trace number. */
	uint64_t line;	  /**< Source 2 only. */
	uint64_t old_address, old_size, new_address, new_size;
};

/** A symbol record. Strings are borrowed for the call and not terminated. In our own streams,
 * addresses are numbers; see format/sysprof/symbol_encoding.h. */
struct format_symbol {
	enum { FORMAT_SYMBOL_LUA, FORMAT_SYMBOL_C, FORMAT_SYMBOL_TRACE } kind;
	uint64_t address; /**< Prototype or C address; for a trace, its start prototype. */
	uint64_t trace;	  /**< Trace number. */
	uint64_t line;	  /**< First line (Lua), start line (trace). */
	const char *name; /**< Chunk name or C symbol. */
	size_t name_len;
};

/**
 * Callbacks for each record, in stream order; NULL members are skipped.
 * If a callback returns non-zero, reading ends with that value and failure.
 */
struct format_visitor {
	int (*symbol)(void *context, const struct format_symbol *symbol, struct failure *why);
	int (*sample)(void *context, const struct format_raw_sample *sample, struct failure *why);
	int (*event)(void *context, const struct format_raw_event *event, struct failure *why);
	/** Called before a sample is decoded, with the bytes of its record, borrowed for the
	 * call. A visitor that knows these bytes from an earlier sample sets @p ret_done; then
	 * sample() is not called. */
	int (*repeat)(void *context, const uint8_t *bytes, size_t len, bool *ret_done,
		      struct failure *why);
};

/**
 * Read one whole stream (symtab, then sysprof or memprof part).
 * @param why FAILURE_INVALID with the byte offset in `address`, or FAILURE_SYSTEM.
 */
int format_read_stream(FILE *file, const struct format_visitor *visitor, void *context,
		       enum format_stream_kind *ret_kind, struct failure *why);

/** Read a stream from memory. */
int format_read_bytes(const void *bytes, size_t len, const struct format_visitor *visitor,
		      void *context, enum format_stream_kind *ret_kind, struct failure *why);

/** Record writers: each appends the bytes of one record to the sink. */
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
/** For memprof: a new symbol, and an event. */
int format_put_event_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			    struct failure *why);
int format_put_event(struct format_sink *sink, const struct format_raw_event *event,
		     struct failure *why);

#endif
