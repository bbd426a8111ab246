/* SPDX-License-Identifier: MIT */
/*
 * Texts just as the reference parser writes them. Users get the reports; this is what shows that
 * our reading of a stream is the reference's.
 * Source: tarantool/luajit b52fe979, tools/utils/symtab.lua and tools/sysprof/parse.lua.
 */
#ifndef FORMAT_STREAM_TARANTOOL_OUTPUT_H
#define FORMAT_STREAM_TARANTOOL_OUTPUT_H

#include "format/stream/stream_symbols.h"
#include "format/text.h"

/** A code location as the reference keys it; unused fields are 0. */
struct tarantool_location {
	uint64_t address, line, trace;
};

enum tarantool_kind {
	TARANTOOL_INTERNAL,
	TARANTOOL_LUA,	   /**< A line of a chunk. */
	TARANTOOL_NATIVE,  /**< A C symbol. */
	TARANTOOL_UNKNOWN, /**< Code without a symbol. */
	TARANTOOL_NOWHERE, /**< Where a trace starts that is not known. */
};

/** What the symbols make of a location. No padding: compared by its bytes. */
struct tarantool_frame {
	uint64_t trace;	 /**< Its number. */
	uint64_t number; /**< LUA: the line; NATIVE: the symbol's address; UNKNOWN: the address. */
	uint32_t name;	 /**< LUA: the chunk's; NATIVE: the symbol's; else 0. */
	uint8_t kind;
	uint8_t is_trace;   /**< A trace that starts there. */
	uint8_t is_general; /**< `trace`, and `number` of native code, are not told. */
	uint8_t unused;
};

/** Chunk names with newlines, which the reference replaces by "function_alias_K". */
struct tarantool_aliases {
	struct intern *chunks;
};

int tarantool_aliases_init(struct tarantool_aliases *aliases, struct failure *why);
void tarantool_aliases_deinit(struct tarantool_aliases *aliases);
/** @param symbol Is in @p symtab, where its name may have been cut. */
int tarantool_aliases_add(struct tarantool_aliases *aliases, const struct symtab *symtab,
			  const struct format_symbol *symbol, struct failure *why);

/** @param ret_frame With the name of the symbol table. */
void tarantool_resolve(const struct symtab *symtab, const struct tarantool_location *location,
		       struct tarantool_frame *ret_frame);

/** Append the text of a frame, such as "@file.lua:12" or "main:0x401000".
 *  @param name The one that it means; @p len 0 where it has none. */
void tarantool_add_frame(struct format_text *text, const struct tarantool_aliases *aliases,
			 const struct tarantool_frame *frame, const char *name, size_t len);

/** Append the parser's whole output for a sysprof stream, its lines sorted bytewise. */
int tarantool_print_sysprof(FILE *stream, struct format_text *text, struct failure *why);

#endif
