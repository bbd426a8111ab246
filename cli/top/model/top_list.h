/* SPDX-License-Identifier: MIT */
/* A list that is longer than the screen, with one line selected. */
#ifndef CLI_TOP_MODEL_TOP_LIST_H
#define CLI_TOP_MODEL_TOP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/top/model/top_keys.h"

/** All zero is a list at its first line. */
struct top_list {
	size_t count;	 /**< Lines of the list. */
	size_t selected; /**< Less than count, unless that is 0. */
	size_t first;	 /**< First line on the screen. */
	uint64_t id;	 /**< Of the selected line, once moved: it stays selected when lines change
			      places. */
	bool is_held;	 /**< The user chose the line; else the first one is selected. */
};

/** Move as a key says. @param height Lines on the screen. @return Whether the command moves. */
bool top_list_move(struct top_list *list, enum top_command command, size_t height);

/**
 * The list has other lines: keep the selected one selected, by its id.
 * @param find @return the line that has an id now, or SIZE_MAX.
 */
void top_list_update(struct top_list *list, size_t count, size_t height,
		     size_t (*find)(const void *context, uint64_t id), const void *context);

/** Scroll so that the selected line is on the screen. */
void top_list_scroll(struct top_list *list, size_t height);

/** Begin at the first line again. */
void top_list_reset(struct top_list *list);

#endif
