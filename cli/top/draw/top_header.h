/* SPDX-License-Identifier: MIT */
/* The lines above the list. */
#ifndef CLI_TOP_DRAW_TOP_HEADER_H
#define CLI_TOP_DRAW_TOP_HEADER_H

#include "cli/top/model/screen_state.h"

/** Draw the header. */
void top_draw_header(struct top_screen *screen);

#endif
