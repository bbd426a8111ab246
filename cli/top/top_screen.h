/* SPDX-License-Identifier: MIT */
/* ljtop's screen. */
#ifndef CLI_TOP_TOP_SCREEN_H
#define CLI_TOP_TOP_SCREEN_H

#include "cli/top/model/screen_state.h"

/**
 * Prepare a screen. To be called before daemon_live_start(), with all privileges: a process of its
 * own keeps them and opens source files of the watched processes, which may be other users'.
 * @param pids  As of top_opener_create().
 * @return It; NULL with @p ret_why set to a few words, static, where there can be none.
 */
struct top_screen *top_screen_create(const pid_t *pids, size_t count, const char **ret_why);

/**
 * Show the screen until the user leaves it, or @c stop is set. The terminal is as it was when this
 * returns, and when something ends the program meanwhile.
 * @param watch Borrowed. Where it ends, the last screen stays until the user leaves it.
 * @param ret_why Set on failure: a few words for people, static.
 * @return 0 or -1.
 */
int top_screen_run(struct top_screen *screen, struct daemon_live *session,
		   const struct top_screen_options *options, const char **ret_why);

void top_screen_destroy(struct top_screen *screen);

#endif
