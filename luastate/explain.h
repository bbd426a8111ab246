/* SPDX-License-Identifier: MIT */
/* Why is a VM taken for one of this build, or for none? */
#ifndef LUASTATE_EXPLAIN_H
#define LUASTATE_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/vm.h"

/** One copy of LuaJIT's interpreter in the target. */
struct luastate_interpreter {
	uint64_t start, end;
	unsigned cframe_bytes;		      /**< Size of its C frames. */
	const struct luastate_layout *layout; /**< NULL until a VM was recognised. */
	/** No row fits: the layout was derived from the interpreter's code and its VM. */
	bool is_derived;
	/** Then: compiled code cannot be followed, as the build has no compiler, or as the program
	 *  has not shown enough of it yet. */
	bool lacks_compiler, has_no_compiler;
};

size_t luastate_interpreter_count(const struct luastate *state);
void luastate_interpreter_get(const struct luastate *state, size_t index,
			      struct luastate_interpreter *ret_interpreter);

/** A layout in one line: fork, value model, range of commits. Rows of layouts.table. */
void luastate_describe_layout(const struct luastate_layout *layout, char *ret_text, size_t size);

/** Receives one field in which an interpreter's own layout differs from the nearest row. @param
 * value -1: it is not known, or there is none. @param how What shows it, or why it is not known,
 * where the layout was derived; static. NULL: debug information says so. */
typedef void luastate_difference_visitor(void *context, const char *field, int32_t row,
					 int32_t value, const char *how);

/** Compare an interpreter's own layout, by debug information or derived, with the row of
 * layouts.table that is nearest. Without the compiler's part, where that is not known.
 *  @return 0, or -1 if it has none. */
int luastate_compare_debug(const struct luastate *state, size_t index,
			   luastate_difference_visitor *visit, void *context,
			   const struct luastate_layout **ret_row);

/** Receives one invariant: what was read where, and whether it holds. @param what Static. */
typedef void luastate_invariant_visitor(void *context, const char *what, uint64_t address,
					uint64_t value, bool holds);

/** How a VM was examined. */
struct luastate_examination {
	const struct luastate_layout *layout;
	uint64_t G;
	bool fits; /**< All invariants hold. */
};

/**
 * Check the invariants of the VM of the coroutine @p L, also behind the first that fails, under its
 * layout, or else under the one that comes nearest. Stopped window: no.
 * @return 0, or -1 if @p L is a coroutine under no layout.
 */
int luastate_examine(struct luastate *state, const struct attach_reader *reader, uint64_t L,
		     luastate_invariant_visitor *visit, void *context,
		     struct luastate_examination *ret_examination);

/** The layouts that a VM fits: more than one where they differ in what the VM does not show yet,
 *  such as traces. @return their number, at most @p max. */
size_t luastate_fitting_layouts(struct luastate *state, const struct attach_reader *reader,
				uint64_t G, const struct luastate_layout **ret_layouts, size_t max);

/** Coroutines met so far whose VMs fit no layout; a few of them. Borrowed.
 *  @return their number. */
size_t luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines);

/** jit.version of a VM. @return 0, or -1 with FAILURE_NOT_FOUND or a read's failure. */
int luastate_read_version(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  char *ret_text, size_t size, struct failure *why);

#endif
