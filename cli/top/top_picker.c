/* SPDX-License-Identifier: MIT */
/* Which process does a user choose on the full screen? */
#include "cli/top/top_picker.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/options.h"
#include "cli/common/signals.h"
#include "cli/processes/choice.h"
#include "cli/processes/process_table.h"
#include "cli/top/terminal/top_terminal.h"

#define PROGRAM "ljtop"

enum {
	/* Lines above the list, and below it. */
	LINES_ABOVE = 2,
	LINES_BELOW = 2,
	KEY_WAIT_MS = 1000,
	KEY_ESCAPE = 27,
	/* A control character and 64 make a letter. */
	KEY_LEAVE = 'Q' - 64,
	LINE_BYTES = 2 * PROCESS_TABLE_ROW,
};

struct picker {
	struct daemon_list *list;
	struct top_terminal terminal;
	size_t selected, first; /* the first one on the screen */
	size_t number;		/* typed so far */
};

/* ---- Drawing ---------------------------------------------------------------------------- */

static size_t height(void)
{
	return LINES > LINES_ABOVE + LINES_BELOW ? (size_t)(LINES - LINES_ABOVE - LINES_BELOW) : 1;
}

/* The texts are ASCII. */
static void draw_line(const struct picker *picker, int y, enum top_look look, const char *text)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line), "%-*.*s", COLS, COLS, text);
	attrset(picker->terminal.looks[look]);
	mvaddnstr(y, 0, line, COLS);
	attrset(A_NORMAL);
}

static void draw_row(const struct picker *picker, size_t index, int y)
{
	char row[PROCESS_TABLE_ROW], line[LINE_BYTES];

	process_table_row(&picker->list->processes[index], row);
	snprintf(line, sizeof(line), "%3zu %s", index + 1, row);
	draw_line(picker, y, index == picker->selected ? TOP_LOOK_SELECTED : TOP_LOOK_PLAIN, line);
}

static void draw(struct picker *picker)
{
	char head[PROCESS_TABLE_ROW], line[LINE_BYTES];
	const struct daemon_list *list = picker->list;

	if (picker->selected < picker->first)
		picker->first = picker->selected;
	if (picker->selected >= picker->first + height())
		picker->first = picker->selected - height() + 1;
	erase();
	snprintf(line, sizeof(line), "ljtop  LuaJIT processes: %zu", list->count);
	draw_line(picker, 0, TOP_LOOK_TITLE, line);
	process_table_head(head);
	snprintf(line, sizeof(line), "    %s", head);
	draw_line(picker, 1, TOP_LOOK_HEAD, line);
	for (size_t i = 0; i < height() && picker->first + i < list->count; i++)
		draw_row(picker, picker->first + i, (int)i + LINES_ABOVE);
	draw_line(picker, LINES - 2, TOP_LOOK_DIM, list->note);
	if (list->count)
		snprintf(line, sizeof(line),
			 "Enter: watch %d   or number   a: all of its name   r: list again   q: "
			 "quit",
			 (int)list->processes[picker->selected].pid);
	else
		snprintf(line, sizeof(line), "r: list again   q: quit");
	draw_line(picker, LINES - 1, TOP_LOOK_DIM, line);
	refresh();
}

/* ---- Keys ------------------------------------------------------------------------------- */

static void move_to(struct picker *picker, long index)
{
	long last = (long)picker->list->count - 1;

	index = index > last ? last : index;
	picker->selected = index < 0 ? 0 : (size_t)index;
}

/* Digits select a row. @return Whether no longer number is possible. */
static bool take_digit(struct picker *picker, int key)
{
	size_t number = picker->number * 10 + (size_t)(key - '0');

	if (number == 0 || number > picker->list->count) {
		picker->number = 0;
		return false;
	}
	picker->number = number;
	move_to(picker, (long)number - 1);
	return number * 10 > picker->list->count;
}

static void choose_selected(const struct picker *picker, struct options_pids *pids)
{
	options_add_pid(PROGRAM, picker->list->processes[picker->selected].pid, pids);
}

static void choose_same_name(const struct picker *picker, struct options_pids *pids)
{
	const struct daemon_list *list = picker->list;
	const char *name = list->processes[picker->selected].name;

	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->processes[i].name, name) == 0)
			options_add_pid(PROGRAM, list->processes[i].pid, pids);
}

/* If no new list can be made, the old one stays. The selected process stays selected. */
static void list_again(struct picker *picker)
{
	const struct daemon_list_options options = { .with_vms = true };
	const struct daemon_list *old = picker->list;
	pid_t selected = old->count ? old->processes[picker->selected].pid : 0;
	struct daemon_list list;
	struct failure why;

	if (daemon_list_processes(&options, &list, &why) != 0)
		return;
	daemon_list_deinit(picker->list);
	*picker->list = list;
	move_to(picker, (long)picker->selected);
	for (size_t i = 0; i < list.count; i++)
		if (list.processes[i].pid == selected)
			picker->selected = i;
}

static void take_move(struct picker *picker, int key)
{
	long at = (long)picker->selected, page = (long)height();

	switch (key) {
	case KEY_UP:
	case 'k':
		move_to(picker, at - 1);
		break;
	case KEY_DOWN:
	case 'j':
		move_to(picker, at + 1);
		break;
	case KEY_PPAGE:
		move_to(picker, at - page);
		break;
	case KEY_NPAGE:
		move_to(picker, at + page);
		break;
	case KEY_HOME:
		move_to(picker, 0);
		break;
	case KEY_END:
		move_to(picker, (long)picker->list->count - 1);
		break;
	case 'r':
		list_again(picker);
		break;
	default:
		break;
	}
}

/* @return 1 if processes were chosen, -1 if the user leaves, else 0. */
static int take_key(struct picker *picker, int key, struct options_pids *pids)
{
	if (key == 'q' || key == KEY_ESCAPE || key == KEY_EXIT || key == KEY_LEAVE)
		return -1;
	if (key >= '0' && key <= '9') {
		if (!take_digit(picker, key))
			return 0;
		choose_selected(picker, pids);
		return 1;
	}
	picker->number = 0;
	if (!picker->list->count ||
	    (key != '\r' && key != '\n' && key != KEY_ENTER && key != 'a')) {
		take_move(picker, key);
		return 0;
	}
	if (key == 'a')
		choose_same_name(picker, pids);
	else
		choose_selected(picker, pids);
	return 1;
}

int top_picker_run(struct daemon_list *list, struct options_pids *pids, const char **ret_text)
{
	struct picker picker = { .list = list };
	int chosen = 0;

	if (top_terminal_open(false, &picker.terminal, ret_text) != 0)
		return EXIT_USAGE;
	while (!chosen && !stop_requested) {
		int key;

		draw(&picker);
		key = top_terminal_key(KEY_WAIT_MS);
		if (key != ERR)
			chosen = take_key(&picker, key, pids);
	}
	top_terminal_close();
	return chosen > 0 ? -1 : EXIT_PROFILE;
}
