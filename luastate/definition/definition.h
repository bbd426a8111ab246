/* SPDX-License-Identifier: MIT */
/* Private to luastate: which names do definitions give to functions? */
#ifndef LUASTATE_DEFINITION_DEFINITION_H
#define LUASTATE_DEFINITION_DEFINITION_H

#include "luastate/luastate.h"

/** Where the code that created a function put it. */
enum definition_fate {
	DEFINITION_NAMED,
	DEFINITION_RETURNED, /**< The function that creates it returns it. Its name derives from
				that function's name. */
	DEFINITION_NAMELESS, /**< Passed to another function, or unknown. */
};

/** A function that a prototype creates. */
struct definition {
	uint64_t child; /**< Its prototype according to the parent's constant; not verified. */
	enum definition_fate fate;
	const char *name; /**< NAMED only: "f", "M.f", "Class:method", "a.b.c", "t[1]". */
};

/** Receives one definition; borrowed until it returns. */
typedef void definition_visitor(void *context, const struct definition *definition);

/**
 * Visit the functions that a prototype creates, with the names that its bytecode gives them: the
 * variable, field or global for the new function, with the table's name before it if the bytecode
 * shows one.
 *
 * Stopped window: no. Makes one copy of the prototype, and reads the constants' strings; bounded.
 * @param address Supposed prototype in the target.
 * @param only    Prototype whose definitions are wanted; 0: all.
 * @return 0, or -1 with FAILURE_INVALID (no prototype, or unknown opcodes), FAILURE_LIMIT (too
 * large), FAILURE_NO_MEMORY or a read's failure.
 * Source: LuaJIT v2.1 src/lj_parse.c (parse_body, bcemit_store, expr_table), src/lj_debug.c
 * (debug_varname), src/lj_bc.h.
 */
int definition_visit(const struct luastate_layout *layout, const struct attach_reader *reader,
		     uint64_t address, uint64_t only, definition_visitor *visit, void *context,
		     struct failure *why);

/** Whether a function's first parameter is named "self", as in a method. */
bool definition_has_self(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t proto);

/**
 * Whether the constants of the prototype at @p address refer to @p child.
 *
 * Stopped window: no.
 * @param header     Supposed GCproto; one that contradicts itself refers to nothing.
 * @param reads_left Reads still allowed, of some KiB each; reduced by the reads made.
 */
bool definition_refers(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t address, const uint8_t *header, uint64_t child,
		       unsigned *reads_left);

#endif
