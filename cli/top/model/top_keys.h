/* SPDX-License-Identifier: MIT */
/* Which command has each key? */
#ifndef CLI_TOP_MODEL_TOP_KEYS_H
#define CLI_TOP_MODEL_TOP_KEYS_H

#include <stddef.h>

/** The command of a key. */
enum top_command {
	TOP_NOTHING,
	/* Views, in the order of enum top_view. */
	TOP_SHOW_FUNCTIONS,
	TOP_SHOW_LINES,
	TOP_SHOW_TREE,
	TOP_SHOW_CALLS,
	TOP_SHOW_MODULES,
	TOP_SHOW_TRACES,
	TOP_SHOW_COROUTINES,
	TOP_SHOW_THREADS,
	TOP_SHOW_SOURCE,
	TOP_NEXT_VIEW,
	TOP_PREVIOUS_VIEW,
	/* Movement in a view. */
	TOP_UP,
	TOP_DOWN,
	TOP_PAGE_UP,
	TOP_PAGE_DOWN,
	TOP_FIRST,
	TOP_LAST,
	TOP_LEFT,
	TOP_RIGHT,
	TOP_ENTER,
	TOP_FOLD,
	TOP_UNFOLD,
	TOP_UNFOLD_ALL,
	/* What a view shows. */
	TOP_SORT_NEXT,
	TOP_SORT_PREVIOUS,
	TOP_SORT_REVERSE,
	/* In the order of enum top_sort. */
	TOP_SORT_BY_SELF,
	TOP_SORT_BY_TOTAL,
	TOP_SORT_BY_NAME,
	TOP_FILTER,
	TOP_WINDOW,
	TOP_NATIVE,
	TOP_FREEZE,
	TOP_RESET,
	/* Others. */
	TOP_WRITE,
	TOP_HELP,
	TOP_REDRAW,
	TOP_ESCAPE,
	TOP_QUIT,
};

enum {
	TOP_KEYS_MAX = 6,
	TOP_KEY_ENTER = '\n',
	TOP_KEY_ESCAPE = 27,
};

/** One line of the help page. */
struct top_key {
	enum top_command command;
	int keys[TOP_KEYS_MAX]; /**< As from wgetch(3), ended by 0. */
	const char *names;	/**< For people, "Up k". */
	const char *help;
};

/** All keys in the order of the help page. A line without a command is a title. */
extern const struct top_key top_keys[];
extern const size_t top_key_count;

/**
 * Find the command of a key.
 * @param key As from wgetch(3).
 * @return TOP_NOTHING if the key has no meaning.
 */
enum top_command top_keys_find(int key);

#endif
