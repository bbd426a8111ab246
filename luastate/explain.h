/* SPDX-License-Identifier: MIT */
/* Why does a VM count as one of this build, or of no build? */
#ifndef LUASTATE_EXPLAIN_H
#define LUASTATE_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/vm.h"

/** One copy of LuaJIT's interpreter in the target. */
struct luastate_interpreter {
	uint64_t start, end;
	unsigned cframe_bytes;		      /**< Size of its VM frames. */
	const struct luastate_layout *layout; /**< NULL until a VM is recognised. */
	/** No row fits. The layout was derived from the interpreter's code and its VM. */
	bool is_derived;
	/** Only if is_derived. Compiled code cannot be followed: the layout lacks the compiler's
	 * part, because the build has no compiler (has_no_compiler) or because the program has
	 * not shown enough of it yet. */
	bool lacks_compiler, has_no_compiler;
};

size_t luastate_interpreter_count(const struct luastate *state);
void luastate_interpreter_get(const struct luastate *state, size_t index,
			      struct luastate_interpreter *ret_interpreter);

/** @return "LuaJIT", "OpenResty" or "Tarantool": whose builds have this layout. */
const char *luastate_fork_of(const struct luastate_layout *layout);

/** Describe a row of layouts.table in one line: fork, value model, range of commits. */
void luastate_describe_layout(const struct luastate_layout *layout, char *ret_text, size_t size);

/**
 * Receives one field in which an interpreter's own layout differs from the nearest row.
 * @param value -1 if it is unknown, or the build has no such field.
 * @param how   For a derived layout: the evidence, or why the value is unknown; static. NULL if
 * debug information gives the value.
 */
typedef void luastate_difference_visitor(void *context, const char *field, int32_t row,
					 int32_t value, const char *how);

/**
 * Compare an interpreter's own layout, from debug information or derived, with the nearest row of
 * layouts.table. The comparison omits the compiler's part if it is unknown.
 * @return 0, or -1 if the interpreter has no layout of its own.
 */
int luastate_compare_debug(const struct luastate *state, size_t index,
			   luastate_difference_visitor *visit, void *context,
			   const struct luastate_layout **ret_row);

/**
 * Receives one invariant: the value, its address, and whether the invariant holds.
 * @param what Static.
 */
typedef void luastate_invariant_visitor(void *context, const char *what, uint64_t address,
					uint64_t value, bool holds);

/** How a VM was examined. */
struct luastate_examination {
	const struct luastate_layout *layout;
	uint64_t G;
	bool fits; /**< All invariants hold. */
};

/**
 * Check all invariants of the VM of the coroutine @p L, also after one fails. Uses the VM's layout,
 * or else the nearest one. Stopped window: no.
 * @return 0, or -1 if @p L is a coroutine under no layout.
 */
int luastate_examine(struct luastate *state, const struct attach_reader *reader, uint64_t L,
		     luastate_invariant_visitor *visit, void *context,
		     struct luastate_examination *ret_examination);

/**
 * Get the layouts that a VM fits. Several fit if they differ in something that the VM does not show
 * yet, such as traces.
 * @return their number, at most @p max.
 */
size_t luastate_fitting_layouts(struct luastate *state, const struct attach_reader *reader,
				uint64_t G, const struct luastate_layout **ret_layouts, size_t max);

/**
 * Get a few of the coroutines whose VMs fit no layout. Borrowed.
 * @return their number.
 */
size_t luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines);

/**
 * Read jit.version of a VM.
 * @return 0, or -1 with FAILURE_NOT_FOUND or a read's failure.
 */
int luastate_read_version(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  char *ret_text, size_t size, struct failure *why);

#endif
