/* SPDX-License-Identifier: MIT */
/* How is the terminal opened for a screen, and restored however the program ends? */
#ifndef CLI_TOP_TERMINAL_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_TOP_TERMINAL_H

#include <stdbool.h>

#include <curses.h>

/** Meanings on the screen; each has its look, with and without colours. */
enum top_look {
	TOP_LOOK_PLAIN,
	TOP_LOOK_DIM,
	TOP_LOOK_TITLE,	   /**< The first line. */
	TOP_LOOK_HEAD,	   /**< Column heads. */
	TOP_LOOK_MARKED,   /**< The chosen view or column. */
	TOP_LOOK_SELECTED, /**< The selected line. */
	TOP_LOOK_HOT,
	TOP_LOOK_WARM,
	TOP_LOOK_NOTE, /**< An important message: an error, an end. */
	/* Parts of a bar, which differ by colour. */
	TOP_LOOK_PART_0,
	TOP_LOOK_PART_1,
	TOP_LOOK_PART_2,
	TOP_LOOK_PART_3,
	TOP_LOOK_PART_4,
	TOP_LOOK_PART_5,
	TOP_LOOK_PART_6,
	TOP_LOOK_PART_7,
	/* The same colours for text. */
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

/** Say why there can be no screen, in a few words for people with a remedy; NULL: there can be one.
 * Checks standard input and output, and TERM. */
const char *top_terminal_refuse(void);

/**
 * Open the terminal. From now on exit(), and signals that end the program, restore it first. Uses
 * no colours if there are none, or if NO_COLOR is set and not empty (no-color.org).
 * @param takes_mouse Report clicks as KEY_MOUSE, if the terminal supports it.
 * @return 0, or -1 with @p ret_why set to a few words, static.
 */
int top_terminal_open(bool takes_mouse, struct top_terminal *ret_terminal, const char **ret_why);

/** Restore the terminal; does nothing if it was not opened. */
void top_terminal_close(void);

/**
 * Wait for a key.
 * @param timeout_ms How long; 0: do not wait.
 * @return The key, as from wgetch(3); ERR if there was none; KEY_EXIT if the terminal is gone.
 */
int top_terminal_key(int timeout_ms);

#endif
