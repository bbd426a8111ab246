/* SPDX-License-Identifier: MIT */
/* What is on the screen, and how is it drawn? */
#ifndef CLI_TOP_DRAW_TOP_DRAW_H
#define CLI_TOP_DRAW_TOP_DRAW_H

#include "cli/top/model/screen_state.h"
#include "cli/top/terminal/top_columns.h"

enum {
	/* Smaller screens have no room for the header and a list. */
	TOP_COLUMNS_MIN = 40,
	TOP_LINES_MIN = 12,
	/* Lines above the list: the header, the views, the column heads. */
	TOP_HEADER_LINES = 3,
	TOP_LIST_LINE = TOP_HEADER_LINES + 2,
};

/** Lines of the list. */
size_t top_draw_height(void);

/** How many processes may have columns of their own. */
size_t top_draw_process_columns(void);

/** The view whose name is at a column of the line of views; TOP_VIEW_COUNT: none. */
enum top_view top_draw_view_at(int x);

/** The sort order of the list's column at @p x. */
enum top_sort top_draw_column_at(const struct top_screen *screen, int x);

/** Draw the whole screen. */
void top_draw(struct top_screen *screen);

/* ---- Parts ------------------------------------------------------------------------------ */

/** Draw screen->line as line @p y, padded to the screen's width, and empty it. */
void top_draw_line(struct top_screen *screen, int y, enum top_look look);

/** Draw screen->line at a position, and empty it. */
void top_draw_at(struct top_screen *screen, int y, int x, enum top_look look);

/** Append at most @p columns of a foreign text to screen->line. */
void top_draw_text(struct top_screen *screen, const char *text, size_t columns, enum top_cut cut);

/** Append a share in percent in 6 columns and a blank, "100.00 ". */
void top_draw_share(struct top_screen *screen, uint64_t part, uint64_t all);

#endif
