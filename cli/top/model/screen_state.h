/* SPDX-License-Identifier: MIT */
/* What is the state of ljtop's screen: its view, its rows, and what the user types? */
#ifndef CLI_TOP_MODEL_SCREEN_STATE_H
#define CLI_TOP_MODEL_SCREEN_STATE_H

#include <signal.h>

#include "cli/top/model/top_list.h"
#include "cli/top/model/top_table.h"
#include "cli/top/model/top_tree.h"
#include "cli/top/source/source_helper.h"
#include "cli/top/terminal/top_terminal.h"
#include "daemon/live.h"
#include "format/text.h"

enum {
	TOP_NOTE_MAX = 640,
	TOP_PROMPT_MAX = 256,
};

/** Options of the screen. */
struct top_screen_options {
	unsigned delay_ms; /**< Between two refreshes. */
	bool takes_mouse;
	/** View, order, filter and natives at the start. */
	const struct format_live_query *query;
	const volatile sig_atomic_t *stop; /**< Set by the caller to leave the screen. */
};

/** What the user is typing. */
enum top_prompt {
	TOP_PROMPT_NONE,
	TOP_PROMPT_FILTER,
	TOP_PROMPT_FORMAT, /**< Format of a file: one key. */
	TOP_PROMPT_FILE,
};

/** The file that the source view shows. */
struct view_source {
	char *chunk; /* NULL: none yet */
	struct top_source file;
	const char *why;      /* why it cannot be shown; or NULL */
	uint64_t *self, *all; /* samples by line, from 0 */
	uint64_t samples;
	uint32_t wanted; /* line to select; 0: none */
};

struct top_screen {
	struct source_helper *helper;
	struct top_terminal terminal;
	struct daemon_live *session;
	struct top_screen_options options;

	struct top_choice choice;
	struct top_table table;
	struct top_list lists[TOP_VIEW_COUNT];
	struct top_folds folds;
	struct view_source source;
	size_t shift; /* columns that names are scrolled by */
	bool is_frozen, is_help, is_dirty, is_over;
	struct top_list help;

	enum top_prompt prompt;
	char typed[TOP_PROMPT_MAX];
	const char *format; /* of the file to write */
	char note[TOP_NOTE_MAX];
	uint64_t note_end_ns;	 /* 0: until the next key */
	uint64_t notices;	 /* notices seen so far */
	struct format_text line; /* the line that is being drawn */
	size_t clicked;		 /* line of the list that was last clicked */
	uint64_t clicked_ns;
};

#endif
