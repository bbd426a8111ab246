/* SPDX-License-Identifier: MIT */
/* What does each key do to the screen? */
#include "cli/top/input/top_actions.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/top/input/top_mouse.h"
#include "cli/top/input/top_prompt.h"
#include "cli/top/model/view_model.h"

enum {
	SHIFT = 8,
	SHIFT_MAX = 4096,
};

/** File formats and the keys that choose them. */
static const struct {
	int key;
	const char *format, *ending;
} formats[] = {
	{ 'p', "pprof", "pb.gz" },
	{ 's', "sysprof", "bin" },
	{ 'f', "folded", "folded" },
	{ 'v', "svg", "svg" },
};

void top_actions_note(struct top_screen *screen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(screen->note, sizeof(screen->note), format, args);
	va_end(args);
}

/* ---- Files ------------------------------------------------------------------------------ */

static pid_t first_pid(const struct top_screen *screen)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);

	return header->process_count ? header->processes[0].pid : getpid();
}

static void choose_format(struct top_screen *screen, int key)
{
	screen->prompt = TOP_PROMPT_NONE;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].key != key || !format_live_can_write(formats[i].format))
			continue;
		screen->format = formats[i].format;
		screen->prompt = TOP_PROMPT_FILE;
		snprintf(screen->typed, sizeof(screen->typed), "ljtop-%d.%s",
			 (int)first_pid(screen), formats[i].ending);
		/* The next free name. */
		for (unsigned n = 2; n < 1000 && access(screen->typed, F_OK) == 0; n++)
			snprintf(screen->typed, sizeof(screen->typed), "ljtop-%d-%u.%s",
				 (int)first_pid(screen), n, formats[i].ending);
	}
}

/* Never overwrite a file, because a wrong key must not destroy a profile. */
static void write_file(struct top_screen *screen)
{
	const struct format_live *live = daemon_live_profile(screen->session);
	struct failure why = { 0 };
	char text[256];
	int errnum, fd = source_helper_create_file(screen->helper, screen->typed, &errnum);

	if (fd < 0) {
		top_actions_note(screen, "%s: %s", screen->typed, strerror(errnum));
		return;
	}
	if (format_live_write(live, screen->format, "ljtop", fd, &why) == 0) {
		top_actions_note(screen, "wrote %" PRIu64 " samples to %s",
				 format_live_samples(live), screen->typed);
		return;
	}
	failure_describe(&why, text, sizeof(text));
	top_actions_note(screen, "%s: %s", screen->typed, text);
}

/* ---- Prompts ---------------------------------------------------------------------------- */

static void begin_filter(struct top_screen *screen)
{
	screen->prompt = TOP_PROMPT_FILTER;
	snprintf(screen->typed, sizeof(screen->typed), "%s", screen->choice.filter);
}

static void set_filter(struct top_screen *screen, const char *text)
{
	size_t len = format_text_cut(text, strlen(text), TOP_FILTER_MAX - 1);

	memcpy(screen->choice.filter, text, len);
	screen->choice.filter[len] = '\0';
	screen->is_dirty = true;
}

static void act_in_prompt(struct top_screen *screen, int key)
{
	enum top_prompt prompt = screen->prompt;
	enum top_typed typed;

	if (prompt == TOP_PROMPT_FORMAT) {
		choose_format(screen, key);
		return;
	}
	typed = top_prompt_key(screen->typed, sizeof(screen->typed), key);
	if (typed != TOP_TYPED_MORE)
		screen->prompt = TOP_PROMPT_NONE;
	if (prompt == TOP_PROMPT_FILTER)
		set_filter(screen, typed == TOP_TYPED_CANCEL ? "" : screen->typed);
	else if (typed == TOP_TYPED_DONE && screen->typed[0])
		write_file(screen);
}

/* ---- Views ------------------------------------------------------------------------------ */

/* The views of callers and of source show the function under the cursor. */
static int open_view(struct top_screen *screen, enum top_view view, struct failure *why)
{
	const struct top_row *row = view_model_row(screen);

	if (view == TOP_VIEW_CALLS && row && row->function != FORMAT_LIVE_OTHER &&
	    (screen->choice.view <= TOP_VIEW_TREE || screen->choice.view == TOP_VIEW_COROUTINES))
		top_choice_function(&screen->choice, row);
	if (view == TOP_VIEW_SOURCE && view_model_choose_source(screen, why) != 0)
		return -1;
	if (view == TOP_VIEW_CALLS)
		top_list_reset(&screen->lists[view]);
	screen->choice.view = view;
	screen->shift = 0;
	screen->is_dirty = true;
	return 0;
}

/* In the view of callers: show the function under the cursor. */
static void follow_call(struct top_screen *screen)
{
	const struct top_row *row = view_model_row(screen);

	if (!row || row->mark == TOP_MARK_TITLE || row->mark == TOP_MARK_CHOSEN)
		return;
	top_choice_function(&screen->choice, row);
	top_list_reset(&screen->lists[TOP_VIEW_CALLS]);
	screen->is_dirty = true;
}

/* Show only the thread or process under the cursor, or all again. */
static void choose_thread(struct top_screen *screen)
{
	const struct top_row *row = view_model_row(screen);

	if (!row)
		return;
	screen->choice.pid = row->mark == TOP_MARK_CHOSEN ? 0 : row->pid;
	screen->choice.tid = row->mark == TOP_MARK_CHOSEN ? 0 : row->tid;
	screen->is_dirty = true;
}

static int enter(struct top_screen *screen, struct failure *why)
{
	const struct top_row *row = view_model_row(screen);

	switch (screen->choice.view) {
	case TOP_VIEW_FUNCTIONS:
		/* Other functions have no source that a file of the process could show. */
		if (!row)
			return 0;
		return open_view(screen, row->chunk ? TOP_VIEW_SOURCE : TOP_VIEW_CALLS, why);
	case TOP_VIEW_COROUTINES:
		return row && row->function != FORMAT_LIVE_OTHER
			       ? open_view(screen, TOP_VIEW_CALLS, why)
			       : 0;
	case TOP_VIEW_LINES:
	case TOP_VIEW_TRACES:
		return row && row->chunk ? open_view(screen, TOP_VIEW_SOURCE, why) : 0;
	case TOP_VIEW_TREE:
		return row ? view_model_fold(screen, row->mark == TOP_MARK_FOLDED, false, why) : 0;
	case TOP_VIEW_CALLS:
		follow_call(screen);
		return 0;
	case TOP_VIEW_THREADS:
		choose_thread(screen);
		return 0;
	default:
		return 0;
	}
}

/* In the tree: fold, or move to the parent; or unfold. Elsewhere: scroll. */
static int go_sideways(struct top_screen *screen, bool right, struct failure *why)
{
	if (screen->choice.view == TOP_VIEW_TREE)
		return view_model_fold(screen, right, false, why);
	if (right)
		screen->shift = screen->shift < SHIFT_MAX ? screen->shift + SHIFT : SHIFT_MAX;
	else
		screen->shift = screen->shift > SHIFT ? screen->shift - SHIFT : 0;
	return 0;
}

static void escape(struct top_screen *screen)
{
	if (screen->choice.filter[0])
		set_filter(screen, "");
	else
		screen->choice.pid = screen->choice.tid = 0;
	screen->is_dirty = true;
}

static void sort_by(struct top_screen *screen, enum top_sort sort)
{
	/* The same order again is reversed. */
	screen->choice.is_reversed = screen->choice.sort == sort && !screen->choice.is_reversed;
	screen->choice.sort = sort;
	screen->is_dirty = true;
}

static void reset(struct top_screen *screen)
{
	format_live_reset(daemon_live_profile(screen->session));
	screen->is_dirty = true;
}

static int toggle(struct top_screen *screen, bool *what)
{
	*what = !*what;
	screen->is_dirty = true;
	return 0;
}

/* ---- Commands --------------------------------------------------------------------------- */

static int act_on_rows(struct top_screen *screen, enum top_command command, struct failure *why)
{
	const struct top_row *row = view_model_row(screen);

	switch (command) {
	case TOP_LEFT:
		return go_sideways(screen, false, why);
	case TOP_RIGHT:
		return go_sideways(screen, true, why);
	case TOP_ENTER:
		return enter(screen, why);
	case TOP_FOLD:
		return view_model_fold(screen, false, false, why);
	case TOP_UNFOLD:
		return view_model_fold(screen, true, false, why);
	case TOP_UNFOLD_ALL:
		return view_model_fold(screen, row && row->mark == TOP_MARK_FOLDED, true, why);
	default:
		return 0;
	}
}

/** Show the program's native code, all, or none. */
static void show_natives(struct top_screen *screen)
{
	struct top_choice *choice = &screen->choice;

	choice->native = choice->native == FORMAT_NATIVE_PROGRAM ? FORMAT_NATIVE_ALL
			 : choice->native == FORMAT_NATIVE_ALL	 ? FORMAT_NATIVE_NONE
								 : FORMAT_NATIVE_PROGRAM;
	/* The other view numbers its functions in its own way. */
	choice->has_function = false;
	screen->is_dirty = true;
}

static int act_on_choice(struct top_screen *screen, enum top_command command)
{
	enum top_sort sort = screen->choice.sort;

	switch (command) {
	case TOP_SORT_NEXT:
		sort_by(screen, (sort + 1) % TOP_SORT_COUNT);
		return 0;
	case TOP_SORT_PREVIOUS:
		sort_by(screen, (sort + TOP_SORT_COUNT - 1) % TOP_SORT_COUNT);
		return 0;
	case TOP_SORT_BY_SELF:
	case TOP_SORT_BY_TOTAL:
	case TOP_SORT_BY_NAME:
		sort_by(screen, (enum top_sort)(command - TOP_SORT_BY_SELF));
		return 0;
	case TOP_SORT_REVERSE:
		return toggle(screen, &screen->choice.is_reversed);
	case TOP_WINDOW:
		return toggle(screen, &screen->choice.window);
	case TOP_NATIVE:
		show_natives(screen);
		return 0;
	case TOP_FREEZE:
		return toggle(screen, &screen->is_frozen);
	case TOP_FILTER:
		begin_filter(screen);
		return 0;
	case TOP_RESET:
		reset(screen);
		return 0;
	case TOP_ESCAPE:
		escape(screen);
		return 0;
	default:
		return 0;
	}
}

static int act_on_command(struct top_screen *screen, enum top_command command, struct failure *why)
{
	enum top_view view = screen->choice.view;

	if (command >= TOP_SHOW_FUNCTIONS && command <= TOP_SHOW_SOURCE)
		return open_view(screen, (enum top_view)(command - TOP_SHOW_FUNCTIONS), why);
	switch (command) {
	case TOP_NEXT_VIEW:
		return open_view(screen, (view + 1) % TOP_VIEW_COUNT, why);
	case TOP_PREVIOUS_VIEW:
		return open_view(screen, (view + TOP_VIEW_COUNT - 1) % TOP_VIEW_COUNT, why);
	case TOP_WRITE:
		screen->prompt = TOP_PROMPT_FORMAT;
		return 0;
	case TOP_HELP:
		screen->is_help = true;
		top_list_reset(&screen->help);
		return 0;
	case TOP_REDRAW:
		clearok(stdscr, TRUE);
		return 0;
	default:
		return command <= TOP_UNFOLD_ALL ? act_on_rows(screen, command, why)
						 : act_on_choice(screen, command);
	}
}

static void act_in_help(struct top_screen *screen, enum top_command command)
{
	struct top_list *help = &screen->help;
	size_t height = LINES > 1 ? (size_t)LINES - 1 : 1;

	help->count = top_key_count;
	/* The page has no cursor, so the page moves. */
	if (command == TOP_UP && help->first > 0)
		help->first--;
	else if (command == TOP_DOWN && help->first + height < help->count)
		help->first++;
	else if ((command == TOP_PAGE_DOWN || command == TOP_LAST) &&
		 help->first + height < help->count)
		help->first = help->count - height;
	else if (command == TOP_PAGE_UP || command == TOP_FIRST)
		help->first = 0;
	else if (command < TOP_UP || command > TOP_LAST)
		screen->is_help = false;
}

static void remember_row(struct top_screen *screen)
{
	const struct top_row *row = view_model_row(screen);

	if (row)
		screen->lists[screen->choice.view].id = row->id;
}

int top_actions_run(struct top_screen *screen, int key, struct failure *why)
{
	enum top_command command = key == KEY_MOUSE ? top_mouse_take(screen) : top_keys_find(key);
	int ret = 0;

	if (key == KEY_RESIZE) {
		top_list_scroll(&screen->lists[screen->choice.view], top_draw_height());
		return 0;
	}
	screen->note[0] = '\0';
	screen->note_end_ns = 0;
	if (screen->prompt != TOP_PROMPT_NONE) {
		if (key != KEY_MOUSE)
			act_in_prompt(screen, key);
		return 0;
	}
	if (screen->is_help) {
		if (key != KEY_MOUSE || command != TOP_NOTHING)
			act_in_help(screen, command);
		return 0;
	}
	if (command == TOP_QUIT)
		return 1;
	if (!top_list_move(&screen->lists[screen->choice.view], command, top_draw_height()))
		ret = act_on_command(screen, command, why);
	remember_row(screen);
	return ret;
}
