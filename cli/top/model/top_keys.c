/* SPDX-License-Identifier: MIT */
/* Which command has each key? Keys of htop and less have the same meaning here; sources: the man
 * pages of htop 3.2 and less 590. */
#include "cli/top/model/top_keys.h"

#include <curses.h>

#define CONTROL(letter) ((letter)&0x1f)

const struct top_key top_keys[] = {
	{ .help = "Views" },
	{ TOP_SHOW_FUNCTIONS, { '1', 'f' }, "1 f", "functions" },
	{ TOP_SHOW_LINES, { '2', 'l' }, "2 l", "lines" },
	{ TOP_SHOW_TREE, { '3', 't', KEY_F(5) }, "3 t F5", "call tree" },
	{ TOP_SHOW_CALLS, { '4', 'c' }, "4 c", "callers and callees of the selected function" },
	{ TOP_SHOW_MODULES, { '5', 'm' }, "5 m", "modules: files and libraries" },
	{ TOP_SHOW_TRACES, { '6', 'J' }, "6 J", "traces of the JIT compiler" },
	{ TOP_SHOW_COROUTINES, { '7', 'o' }, "7 o", "coroutines that run" },
	{ TOP_SHOW_THREADS, { '8', 'p', 'H' }, "8 p H", "processes and threads" },
	{ TOP_SHOW_SOURCE, { '9', 's' }, "9 s", "source around the selected function or line" },
	{ TOP_NEXT_VIEW, { '\t' }, "Tab", "next view" },
	{ TOP_PREVIOUS_VIEW, { KEY_BTAB }, "Shift-Tab", "previous view" },
	{ .help = "Moving" },
	{ TOP_UP, { KEY_UP, 'k', CONTROL('P') }, "Up k", "one line up" },
	{ TOP_DOWN, { KEY_DOWN, 'j', CONTROL('N') }, "Down j", "one line down" },
	{ TOP_PAGE_UP, { KEY_PPAGE, 'b', CONTROL('B') }, "PgUp b", "one page up" },
	{ TOP_PAGE_DOWN, { KEY_NPAGE, ' ', CONTROL('F') }, "PgDn Space", "one page down" },
	{ TOP_FIRST, { KEY_HOME, 'g' }, "Home g", "first line" },
	{ TOP_LAST, { KEY_END, 'G' }, "End G", "last line" },
	{ TOP_LEFT, { KEY_LEFT }, "Left", "scroll names left; fold in the tree" },
	{ TOP_RIGHT, { KEY_RIGHT }, "Right", "scroll names right; unfold in the tree" },
	{ TOP_ENTER,
	  { TOP_KEY_ENTER, '\r', KEY_ENTER },
	  "Enter",
	  "source, or callers, or fold; this thread only" },
	{ TOP_FOLD, { '-' }, "-", "fold in the tree" },
	{ TOP_UNFOLD, { '+', '=' }, "+", "unfold in the tree" },
	{ TOP_UNFOLD_ALL, { '*' }, "*", "unfold all below, or fold it" },
	{ .help = "What is shown" },
	{ TOP_SORT_NEXT, { '>', '.', KEY_F(6) }, "> F6", "sort by the next column" },
	{ TOP_SORT_PREVIOUS, { '<', ',' }, "<", "sort by the previous column" },
	{ TOP_SORT_BY_SELF, { 'P' }, "P", "sort by self" },
	{ TOP_SORT_BY_TOTAL, { 'T' }, "T", "sort by total" },
	{ TOP_SORT_BY_NAME, { 'N' }, "N", "sort by name" },
	{ TOP_SORT_REVERSE, { 'I' }, "I", "reverse the order" },
	{ TOP_FILTER, { '/', '\\', KEY_F(3), KEY_F(4) }, "/ \\ F4", "only lines with a text" },
	{ TOP_WINDOW, { 'a' }, "a", "all since the start, or the last window" },
	{ TOP_NATIVE, { 'n' }, "n", "native frames: the program's, all, none" },
	{ TOP_FREEZE, { 'Z', 'z' }, "Z z", "freeze the screen; sampling continues" },
	{ TOP_RESET, { 'R', 'r' }, "R r", "forget what was sampled so far" },
	{ .help = "Mouse" },
	{ .names = "click", .help = "select a line; open a view; sort by a column" },
	{ .names = "double click", .help = "Enter" },
	{ .names = "wheel", .help = "some lines up or down" },
	{ .help = "Other" },
	{ TOP_WRITE, { 'w' }, "w", "write what was sampled so far to a file" },
	{ TOP_HELP, { 'h', '?', KEY_F(1) }, "h ? F1", "this page" },
	{ TOP_REDRAW, { CONTROL('L') }, "Ctrl-L", "redraw the screen" },
	{ TOP_ESCAPE, { TOP_KEY_ESCAPE }, "Esc", "end the filter; all threads again" },
	{ TOP_QUIT, { 'q', 'Q', KEY_F(10), CONTROL('C') }, "q F10", "quit" },
};
const size_t top_key_count = sizeof(top_keys) / sizeof(top_keys[0]);

enum top_command top_keys_find(int key)
{
	for (size_t i = 0; i < top_key_count && key > 0; i++)
		for (size_t k = 0; k < TOP_KEYS_MAX && top_keys[i].keys[k]; k++)
			if (top_keys[i].keys[k] == key)
				return top_keys[i].command;
	return TOP_NOTHING;
}
