/* SPDX-License-Identifier: MIT */
/* Which frames does a reader want to see? */
#ifndef FORMAT_VIEW_H
#define FORMAT_VIEW_H

#include <regex.h>

#include "format/profile.h"

/** How much native code a view shows. */
enum format_native {
	FORMAT_NATIVE_DEFAULT, /**< The report's own choice. */
	/** The program's own code, if it has names. LuaJIT's inner functions, and the C library
	 * below them, count to the line that called them; one frame stands for all code before the
	 * first Lua function. A chain without Lua is one frame, such as "[native: libc]", if its
	 * modules are known. */
	FORMAT_NATIVE_PROGRAM,
	FORMAT_NATIVE_ALL,
	FORMAT_NATIVE_NONE, /**< As PROGRAM, without any native frame around Lua. */
	FORMAT_NATIVE_COUNT,
};

/** @return "program", "all", "none"; NULL for the default and invalid values. */
const char *format_native_name(enum format_native native);

/** A view of a profile. The expressions are borrowed; NULL: not used. They are searched in a
 * frame's text, as in "burn (@burn.lua:12)". */
struct format_view {
	enum format_native native;
	/* These look at all frames of a chain, shown or not. */
	const regex_t *focus;  /**< Only samples with such a frame. */
	const regex_t *ignore; /**< No samples with such a frame. */
	/* These look at the frames that `native` leaves. */
	const regex_t *hide; /**< Without such frames. */
	const regex_t *show; /**< Only such frames. */
};

/** @return Whether the view differs from the profile as it is. */
bool format_view_changes(const struct format_view *view);

/** @return Whether Lua functions are in the profile. */
bool format_profile_has_lua(const struct format_profile *profile);

/**
 * Make a profile of what a view shows. Samples that lose their last frame count as "[hidden]".
 * @param view DEFAULT means PROGRAM here.
 * @param ret_profile The caller destroys it. It holds copies of everything.
 * @return 0, or -1: FAILURE_NO_MEMORY, FAILURE_LIMIT.
 */
int format_profile_view(const struct format_profile *profile, const struct format_view *view,
			struct format_profile **ret_profile, struct failure *why);

#endif
