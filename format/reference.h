/* SPDX-License-Identifier: MIT */
#ifndef FORMAT_REFERENCE_H
#define FORMAT_REFERENCE_H

#include "format/symtab.h"
#include "format/text.h"

/*
 * Texts just as the reference parser writes them. Users get the reports; this is what shows that
 * our reading of a stream is the reference's.
 * Source: tarantool/luajit b52fe979, tools/utils/symtab.lua and tools/sysprof/parse.lua.
 */

/** A code location as the reference keys it; unused fields are 0. */
struct reference_location {
	uint64_t address, line, trace;
};

/** Chunk names with newlines, which the reference replaces by "function_alias_K". */
struct reference_aliases {
	struct format_intern *chunks;
};

int reference_aliases_init(struct reference_aliases *aliases, struct failure *why);
void reference_aliases_deinit(struct reference_aliases *aliases);
int reference_aliases_add(struct reference_aliases *aliases, const struct format_symbol *symbol,
			  struct failure *why);

/** Append the location's text, such as "@file.lua:12" or "main:0x401000". */
void reference_add_location(struct format_text *text, const struct symtab *symtab,
			    const struct reference_aliases *aliases,
			    const struct reference_location *location);

/** Append the parser's whole output for a sysprof stream, its lines sorted bytewise. */
int reference_print_sysprof(FILE *stream, struct format_text *text, struct failure *why);

#endif
