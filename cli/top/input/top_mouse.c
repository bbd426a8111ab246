/* SPDX-License-Identifier: MIT */
/* What do clicks and the wheel do to the screen? */
#include "cli/top/input/top_mouse.h"
#include "attach/clock.h"

enum {
	/* Lines per notch of the wheel. */
	WHEEL_LINES = 3,
	DOUBLE_CLICK_NS = 400 * 1000 * 1000,
};

/* Scroll all lines of a notch except the last, which the returned command scrolls. */
static enum top_command turn_wheel(struct top_screen *screen, enum top_command command)
{
	for (int i = 1; i < WHEEL_LINES && !screen->is_help; i++)
		top_list_move(&screen->lists[screen->choice.view], command, top_draw_height());
	return command;
}

static enum top_command click_line(struct top_screen *screen, size_t line)
{
	struct top_list *list = &screen->lists[screen->choice.view];
	uint64_t time_ns = clock_now_ns();
	bool is_double;

	if (line >= list->count)
		return TOP_NOTHING;
	is_double = line == screen->clicked && time_ns - screen->clicked_ns < DOUBLE_CLICK_NS;
	list->selected = line;
	list->is_chosen = true;
	screen->clicked = line;
	/* A third click counts as a first one. */
	screen->clicked_ns = is_double ? 0 : time_ns;
	return is_double ? TOP_ENTER : TOP_NOTHING;
}

static enum top_command click(struct top_screen *screen, int x, int y)
{
	static const enum top_command sorts[TOP_SORT_COUNT] = {
		[TOP_SORT_SELF] = TOP_SORT_BY_SELF,
		[TOP_SORT_TOTAL] = TOP_SORT_BY_TOTAL,
		[TOP_SORT_NAME] = TOP_SORT_BY_NAME,
	};
	enum top_view view;

	if (y == TOP_HEADER_LINES) {
		view = top_draw_view_at(x);
		return view == TOP_VIEW_COUNT ? TOP_NOTHING
					      : TOP_SHOW_FUNCTIONS + (enum top_command)view;
	}
	if (y == TOP_HEADER_LINES + 1)
		return sorts[top_draw_column_at(screen, x)];
	if (y < TOP_LIST_LINE || y >= TOP_LIST_LINE + (int)top_draw_height())
		return TOP_NOTHING;
	return click_line(screen,
			  screen->lists[screen->choice.view].first + (size_t)(y - TOP_LIST_LINE));
}

enum top_command top_mouse_take(struct top_screen *screen)
{
	MEVENT event;

	if (getmouse(&event) != OK || screen->prompt != TOP_PROMPT_NONE)
		return TOP_NOTHING;
	if (event.bstate & BUTTON4_PRESSED)
		return turn_wheel(screen, TOP_UP);
	if (event.bstate & BUTTON5_PRESSED)
		return turn_wheel(screen, TOP_DOWN);
	if (!(event.bstate & BUTTON1_PRESSED) || screen->is_help)
		return TOP_NOTHING;
	return click(screen, event.x, event.y);
}
