/* SPDX-License-Identifier: MIT */
/* Which frames of one chain does the view of a program keep? */
#ifndef FORMAT_VIEW_REDUCE_H
#define FORMAT_VIEW_REDUCE_H

#include "format/sample.h"
#include "format/text.h"
#include "format/view.h"

/** What a frame is to a reader who looks for Lua. */
enum view_class {
	VIEW_LUA,	      /**< A Lua function, a built-in, compiled code, or VM work. */
	VIEW_CFUNC,	      /**< A C function called from Lua. */
	VIEW_NAMELESS,	      /**< The same, of which only the address is known. */
	VIEW_LUAJIT,	      /**< Native code of LuaJIT itself, its C API included. */
	VIEW_RUNTIME,	      /**< Native code of the C library and the loader. */
	VIEW_RUNTIME_UNNAMED, /**< The same, of a function without a name. */
	VIEW_OWN,     /**< Other native code of a known module: the program's, or a library's. */
	VIEW_UNNAMED, /**< The same, of a function without a name. */
	VIEW_UNKNOWN, /**< Native code of an unknown module. */
	VIEW_MARK,    /**< Not code: a process, a wait, a gap in the chain. Always kept. */
};

enum view_class view_class_of(const struct format_function *function);

/** What a view shows in place of one or several frames. */
enum view_step_kind {
	VIEW_KEEP,    /**< The frame itself. */
	VIEW_STARTUP, /**< All native code before the first Lua function; named by this frame. */
	VIEW_OUTSIDE, /**< All native code of a chain without Lua; named by this frame's module. */
	VIEW_CALLED,  /**< A C function without a name; named by its module. */
};

struct view_step {
	enum view_step_kind kind;
	uint32_t frame; /**< Index in the chain. */
};

/** Whether a chain neither has Lua nor a native frame of a known module. */
bool view_tells_nothing(const enum view_class *classes, size_t count);

/**
 * Reduce a chain.
 * @param classes By frame, root first.
 * @param native PROGRAM or NONE.
 * @param ret_steps Room for @p count steps; root first.
 * @return Number of steps; 0 only if @p count is 0.
 */
size_t view_reduce(const enum view_class *classes, size_t count, enum format_native native,
		   struct view_step *ret_steps);

/**
 * Describe the function that a step of another kind than KEEP shows.
 * @param text Holds the name; borrowed as long as the result is used.
 * @return Whether there was memory.
 */
bool view_step_function(enum view_step_kind kind, const struct format_function *frame,
			struct format_text *text, struct format_function *ret_function);

#endif
