/* SPDX-License-Identifier: MIT */
/* What do the views show of the live profile? */
#ifndef CLI_TOP_MODEL_VIEW_MODEL_H
#define CLI_TOP_MODEL_VIEW_MODEL_H

#include "cli/top/model/screen_state.h"

/** The row under the cursor, borrowed; NULL if there is none, or in the source view. */
const struct top_row *view_model_row(const struct top_screen *screen);

/**
 * Rebuild the table of the view, and keep the cursor on its row.
 * @param height Lines of the list.
 * @param processes Most processes that get a column.
 * @return 0, or -1 with FAILURE_NO_MEMORY.
 */
int view_model_update(struct top_screen *screen, size_t height, size_t processes,
		      struct failure *why);

/** Choose and open the file for the source view: that of the row under the cursor, else that of the
 * hottest line. */
int view_model_choose_source(struct top_screen *screen, struct failure *why);
void view_model_forget_source(struct view_source *source);

/**
 * Fold or unfold the row under the cursor.
 * @param below Also all rows below it.
 */
int view_model_fold(struct top_screen *screen, bool is_open, bool below, struct failure *why);

#endif
