/* SPDX-License-Identifier: MIT */
/* What is on the screen, and how it is drawn. */
#ifndef CLI_TOP_DRAW_TOP_DRAW_H
#define CLI_TOP_DRAW_TOP_DRAW_H

#include "cli/top/model/screen_state.h"
#include "cli/top/terminal/top_columns.h"

enum {
	/* Smaller screens have no room for the header and a list. */
	TOP_COLUMNS_MIN = 40,
	TOP_LINES_MIN = 12,
	/* Lines above the list: the header, the views, the heads of the columns. */
	TOP_HEADER_LINES = 6,
	TOP_LIST_LINE = TOP_HEADER_LINES + 2,
};

/** Lines that the list has. */
size_t top_draw_height(void);

/** The view whose name is at a column of its line; TOP_VIEW_COUNT: none. */
enum top_view top_draw_view_at(int x);

/** What rows are sorted by in the column of the list that is at @p x. */
enum top_sort top_draw_column_at(int x);

/** Draw all of it. */
void top_draw(struct top_screen *screen);

/* ---- Parts ------------------------------------------------------------------------------ */

/** Put screen->line, and blanks to the end of the screen, into a line of it; empties it. */
void top_draw_line(struct top_screen *screen, int y, enum top_look look);

/** Put screen->line at a place; empties it. */
void top_draw_at(struct top_screen *screen, int y, int x, enum top_look look);

/** Append at most @p columns of a foreign text to screen->line. */
void top_draw_text(struct top_screen *screen, const char *text, size_t columns, enum top_cut cut);

void top_draw_header(struct top_screen *screen);

/** Share in percent in 6 columns and a blank, "100.00 ". */
void top_draw_share(struct top_screen *screen, uint64_t part, uint64_t all);

#endif
