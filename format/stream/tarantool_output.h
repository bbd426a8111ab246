/* SPDX-License-Identifier: MIT */
/*
 * What does Tarantool's own parser print? Reports do not use these texts directly; tests compare
 * them with Tarantool's output, to show that we read streams as it does.
 * Source: tarantool/luajit b52fe979, tools/utils/symtab.lua and tools/sysprof/parse.lua.
 */
#ifndef FORMAT_STREAM_TARANTOOL_OUTPUT_H
#define FORMAT_STREAM_TARANTOOL_OUTPUT_H

#include "format/stream/stream_symbols.h"
#include "format/text.h"

/** A code location as Tarantool's parser identifies it; unused fields are 0. */
struct tarantool_location {
	uint64_t address, line, trace;
};

enum tarantool_kind {
	TARANTOOL_INTERNAL,
	TARANTOOL_LUA,	   /**< A line of a chunk. */
	TARANTOOL_NATIVE,  /**< A C symbol. */
	TARANTOOL_UNKNOWN, /**< Code without a symbol. */
	TARANTOOL_NOWHERE, /**< An unknown start of a trace. */
};

/** The meaning of a location by the symbols. No padding: compared as bytes. */
struct tarantool_frame {
	uint64_t trace;	 /**< Its trace number. */
	uint64_t number; /**< LUA: the line; NATIVE: the symbol's address; UNKNOWN: the address. */
	uint32_t name; /**< LUA: id of the chunk's name; NATIVE: id of the symbol's name; otherwise
			  0. */
	uint8_t kind;
	uint8_t is_trace;   /**< A trace starts there. */
	uint8_t is_general; /**< `trace`, and `number` of native code, are removed. */
	uint8_t unused;
};

/** Chunk names with newlines, which Tarantool's parser replaces by "function_alias_K". */
struct tarantool_aliases {
	struct intern *chunks;
};

int tarantool_aliases_init(struct tarantool_aliases *aliases, struct failure *why);
void tarantool_aliases_deinit(struct tarantool_aliases *aliases);
/** @param symbol Must be in @p symtab, which may have shortened its name. */
int tarantool_aliases_add(struct tarantool_aliases *aliases, const struct symtab *symtab,
			  const struct format_symbol *symbol, struct failure *why);

/** @param ret_frame Its name is an id of the symbol table. */
void tarantool_resolve(const struct symtab *symtab, const struct tarantool_location *location,
		       struct tarantool_frame *ret_frame);

/**
 * Append the text of a frame, such as "@file.lua:12" or "main:0x401000".
 * @param name The frame's name; @p len is 0 if it has none.
 */
void tarantool_add_frame(struct format_text *text, const struct tarantool_aliases *aliases,
			 const struct tarantool_frame *frame, const char *name, size_t len);

/** Append the parser's whole output for a sysprof stream, with its lines sorted by bytes. */
int tarantool_print_sysprof(FILE *stream, struct format_text *text, struct failure *why);

#endif
