/* SPDX-License-Identifier: MIT */
/* How is ljtop's screen run? */
#ifndef CLI_TOP_TOP_SCREEN_H
#define CLI_TOP_TOP_SCREEN_H

#include "cli/top/model/screen_state.h"

/**
 * Prepare a screen. Call this before daemon_live_start(), with all privileges: the source helper
 * keeps them, and opens source files of the sampled processes, which may belong to other users.
 * @param pids As for source_helper_create().
 * @return The screen, or NULL with @p ret_why set to a few words, static.
 */
struct top_screen *top_screen_create(const pid_t *pids, size_t count, const char **ret_why);

/**
 * Show the screen until the user leaves it, or @c stop is set. Restores the terminal when it
 * returns, and also when the program ends meanwhile.
 * @param session Borrowed. When it ends, the last screen stays until the user leaves.
 * @param ret_why Set on failure: a few words for people, static.
 * @return 0 or -1.
 */
int top_screen_run(struct top_screen *screen, struct daemon_live *session,
		   const struct top_screen_options *options, const char **ret_why);

void top_screen_destroy(struct top_screen *screen);

#endif
