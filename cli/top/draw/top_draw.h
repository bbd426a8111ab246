/* SPDX-License-Identifier: MIT */
/* What is on the screen, and how it is drawn. */
#ifndef CLI_TOP_DRAW_TOP_DRAW_H
#define CLI_TOP_DRAW_TOP_DRAW_H

#include "cli/top/model/top_list.h"
#include "cli/top/source_helper.h"
#include "cli/top/top_screen.h"
#include "cli/top/model/top_source.h"
#include "cli/top/model/top_table.h"
#include "cli/top/draw/top_terminal.h"
#include "cli/top/draw/top_columns.h"
#include "cli/top/model/top_tree.h"
#include "daemon/watch.h"

enum {
	/* Smaller screens have no room for the header and a list. */
	TOP_COLUMNS_MIN = 40,
	TOP_LINES_MIN = 12,
	/* Lines above the list: the header, the views, the heads of the columns. */
	TOP_HEADER_LINES = 6,
	TOP_LIST_LINE = TOP_HEADER_LINES + 2,
	TOP_NOTE_MAX = 640,
	TOP_PROMPT_MAX = 256,
};

/** What is being typed. */
enum top_prompt {
	TOP_PROMPT_NONE,
	TOP_PROMPT_FILTER,
	TOP_PROMPT_FORMAT, /**< Of a file: one key. */
	TOP_PROMPT_FILE,
};

/** The file that is shown as source. */
struct top_shown_source {
	char *chunk; /* NULL: none yet */
	struct top_source file;
	const char *why;      /* it cannot be shown; or NULL */
	uint64_t *self, *all; /* samples by line, from 0 */
	uint64_t samples;
	uint32_t wanted; /* line to be selected; 0: none */
};

struct top_screen {
	struct top_opener *opener;
	struct top_terminal terminal;
	struct daemon_watch *watch;
	struct top_screen_options options;

	struct top_choice choice;
	struct top_table table;
	struct top_list lists[TOP_VIEW_COUNT];
	struct top_folds folds;
	struct top_shown_source source;
	size_t shift; /* columns that names are scrolled by */
	bool is_frozen, is_help, is_dirty, is_over;
	struct top_list help;

	enum top_prompt prompt;
	char typed[TOP_PROMPT_MAX];
	const char *format; /* of the file to be written */
	char note[TOP_NOTE_MAX];
	uint64_t note_end_ns;	 /* 0: until a key is typed */
	uint64_t notices;	 /* that were seen */
	struct format_text line; /* being drawn */
	size_t clicked;		 /* line of the list, by the mouse */
	uint64_t clicked_ns;
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
