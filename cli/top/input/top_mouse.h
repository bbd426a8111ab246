/* SPDX-License-Identifier: MIT */
/* How does the mouse select, open, sort and scroll? */
#ifndef CLI_TOP_INPUT_TOP_MOUSE_H
#define CLI_TOP_INPUT_TOP_MOUSE_H

#include "cli/top/draw/top_draw.h"
#include "cli/top/model/top_keys.h"

/**
 * Handle a mouse event, after KEY_MOUSE. A click selects its line; a double click on a line acts
 * like Enter.
 * @return The command for the event, or TOP_NOTHING.
 */
enum top_command top_mouse_take(struct top_screen *screen);

#endif
