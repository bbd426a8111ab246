/* SPDX-License-Identifier: MIT */
/* The mouse: it selects, goes into lines, opens views, sorts and scrolls. */
#ifndef CLI_TOP_INPUT_TOP_MOUSE_H
#define CLI_TOP_INPUT_TOP_MOUSE_H

#include "cli/top/draw/top_draw.h"
#include "cli/top/model/top_keys.h"

/**
 * Take what the mouse did, after KEY_MOUSE. A click selects its line; two in a row on one line are
 * Enter.
 * @return The command that it stands for, TOP_NOTHING for none.
 */
enum top_command top_mouse_take(struct top_screen *screen);

#endif
