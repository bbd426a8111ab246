/* SPDX-License-Identifier: MIT */
/* How does a list that is longer than the screen move, with one line selected? */
#ifndef CLI_TOP_MODEL_TOP_LIST_H
#define CLI_TOP_MODEL_TOP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/top/model/top_keys.h"

/** All zero is a list at its first line. */
struct top_list {
	size_t count;	 /**< Lines of the list. */
	size_t selected; /**< Less than count, unless count is 0. */
	size_t first;	 /**< First line on the screen. */
	/** Id of the selected line after a move: the line stays selected when it changes its
	 * position. */
	uint64_t id;
	bool is_chosen; /**< The user chose the line; else the first one is selected. */
};

/**
 * Move the selection.
 * @param height Lines on the screen.
 * @return Whether the command is a movement.
 */
bool top_list_move(struct top_list *list, enum top_command command, size_t height);

/**
 * Update the list after its lines have changed, and keep the selected line by its id.
 * @param find Returns the line with an id, or SIZE_MAX.
 */
void top_list_update(struct top_list *list, size_t count, size_t height,
		     size_t (*find)(const void *context, uint64_t id), const void *context);

/** Scroll to the selected line. */
void top_list_scroll(struct top_list *list, size_t height);

/** Go back to the first line. */
void top_list_reset(struct top_list *list);

#endif
