/* SPDX-License-Identifier: MIT */
/* What keys do to the screen. */
#ifndef CLI_TOP_INPUT_TOP_ACTIONS_H
#define CLI_TOP_INPUT_TOP_ACTIONS_H

#include "cli/top/draw/top_draw.h"

/** Take one key. @return 1 where the user leaves, 0 to go on; -1 with FAILURE_NO_MEMORY. */
int top_actions_run(struct top_screen *screen, int key, struct failure *why);

/** Tell the user something in the last line. @param text Need not be fit for a terminal. */
void top_actions_note(struct top_screen *screen, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
