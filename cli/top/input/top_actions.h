/* SPDX-License-Identifier: MIT */
/* What does each key do to the screen? */
#ifndef CLI_TOP_INPUT_TOP_ACTIONS_H
#define CLI_TOP_INPUT_TOP_ACTIONS_H

#include "cli/top/draw/top_draw.h"

/**
 * Handle one key.
 * @return 1 if the user leaves, 0 to continue; -1 with FAILURE_NO_MEMORY.
 */
int top_actions_run(struct top_screen *screen, int key, struct failure *why);

/**
 * Show a message in the last line.
 * @param format Makes a text that may contain any bytes.
 */
void top_actions_note(struct top_screen *screen, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
