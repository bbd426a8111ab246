/* SPDX-License-Identifier: MIT */
/* The terminal: taken for a screen, and given back whatever ends the program. */
#ifndef CLI_TOP_TERMINAL_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_TOP_TERMINAL_H

#include <stdbool.h>

#include <curses.h>

/** What something on the screen means; each has its look, with and without colours. */
enum top_look {
	TOP_LOOK_PLAIN,
	TOP_LOOK_DIM,
	TOP_LOOK_TITLE,	   /**< The first line. */
	TOP_LOOK_HEAD,	   /**< Heads of columns. */
	TOP_LOOK_MARKED,   /**< What is chosen: a view, a column. */
	TOP_LOOK_SELECTED, /**< The selected line. */
	TOP_LOOK_HOT,
	TOP_LOOK_WARM,
	TOP_LOOK_NOTE, /**< Something to be seen: an error, an end. */
	/* Parts of a bar, told apart by colour. */
	TOP_LOOK_PART_0,
	TOP_LOOK_PART_1,
	TOP_LOOK_PART_2,
	TOP_LOOK_PART_3,
	TOP_LOOK_PART_4,
	TOP_LOOK_PART_5,
	TOP_LOOK_PART_6,
	TOP_LOOK_PART_7,
	/* The same as text. */
	TOP_LOOK_STATE_0,
	TOP_LOOK_STATE_1,
	TOP_LOOK_STATE_2,
	TOP_LOOK_STATE_3,
	TOP_LOOK_STATE_4,
	TOP_LOOK_STATE_5,
	TOP_LOOK_STATE_6,
	TOP_LOOK_STATE_7,
	TOP_LOOK_COUNT,
};

/** A terminal in use. */
struct top_terminal {
	bool utf8, colour;
	attr_t looks[TOP_LOOK_COUNT];
};

/**
 * Why there can be no screen, or NULL: a few words for people, with what helps.
 * Looks at standard input and output, and at TERM.
 */
const char *top_terminal_refuse(void);

/**
 * Take the terminal. From here on exit(), and signals that end the program, give it back first.
 * Colours are left out where there are none, or NO_COLOR is set and not empty (no-color.org).
 * @param takes_mouse Clicks arrive as KEY_MOUSE, where the terminal tells of them.
 * @return 0, or -1 with @p ret_why set to a few words, static.
 */
int top_terminal_open(bool takes_mouse, struct top_terminal *ret_terminal, const char **ret_why);

/** Give it back; does nothing if it was not taken. */
void top_terminal_close(void);

/**
 * Wait for a key.
 * @param timeout_ms How long; 0: not at all.
 * @return It, as wgetch(3); ERR where there was none. KEY_EXIT where the terminal is gone.
 */
int top_terminal_key(int timeout_ms);

#endif
