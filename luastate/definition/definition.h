/* SPDX-License-Identifier: MIT */
/* Private to luastate: what the definitions of functions call them. */
#ifndef LUASTATE_DEFINITION_DEFINITION_H
#define LUASTATE_DEFINITION_DEFINITION_H

#include "luastate/luastate.h"

/** Where the code that made a function put it. */
enum definition_fate {
	DEFINITION_NAMED,
	DEFINITION_RETURNED, /**< By the function that makes it: it has no name but as that one's.
			      */
	DEFINITION_NAMELESS, /**< Passed to another function, or not known. */
};

/** A function that a prototype makes. */
struct definition {
	uint64_t child; /**< Its prototype, as the parent's constant says: unchecked. */
	enum definition_fate fate;
	const char *name; /**< NAMED only: "f", "M.f", "Class:method", "a.b.c", "t[1]". */
};

/** Receives one definition; borrowed until it returns. */
typedef void definition_visitor(void *context, const struct definition *definition);

/**
 * Visit the functions that a prototype makes, with the names that its bytecode gives them: the
 * variable, field or global in which the new function is put, with the table's name before it where
 * the bytecode shows one.
 *
 * Stopped window: no. One copy of the prototype, and reads of the constants' strings; bounded.
 * @param address Of the prototype in the target, not known to be one.
 * @param only    The one prototype whose definitions are wanted; 0: all.
 * @return 0, or -1 with FAILURE_INVALID (no prototype, or opcodes that are not known),
 * FAILURE_LIMIT (too large), FAILURE_NO_MEMORY or a read's failure. Source: LuaJIT v2.1
 * src/lj_parse.c (parse_body, bcemit_store, expr_table), src/lj_debug.c (debug_varname),
 * src/lj_bc.h.
 */
int definition_visit(const struct luastate_layout *layout, const struct attach_reader *reader,
		     uint64_t address, uint64_t only, definition_visitor *visit, void *context,
		     struct failure *why);

/** Whether a function's first parameter is called "self", as a method's. */
bool definition_has_self(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t proto);

/**
 * Whether the constants of the prototype at @p address refer to @p child.
 *
 * Stopped window: no.
 * @param header     Its GCproto, not known to be one: one that contradicts itself refers to
 * nothing.
 * @param reads_left How many reads there may be, of some KiB each; what was used is taken off.
 */
bool definition_refers(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t address, const uint8_t *header, uint64_t child,
		       unsigned *reads_left);

#endif
