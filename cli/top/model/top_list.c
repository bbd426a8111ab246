/* SPDX-License-Identifier: MIT */
/* Where is the cursor of a list, and which part of the list is visible? */
#include "cli/top/model/top_list.h"

#include <string.h>

void top_list_reset(struct top_list *list)
{
	memset(list, 0, sizeof(*list));
}

void top_list_scroll(struct top_list *list, size_t height)
{
	if (height == 0)
		return;
	if (list->selected < list->first)
		list->first = list->selected;
	if (list->selected >= list->first + height)
		list->first = list->selected - height + 1;
	/* Show no blank lines at the end while there are hidden lines above. */
	if (list->first + height > list->count)
		list->first = list->count > height ? list->count - height : 0;
}

static void step(struct top_list *list, size_t back, size_t on)
{
	size_t last = list->count ? list->count - 1 : 0;

	list->selected = list->selected > back ? list->selected - back : 0;
	list->selected = last - list->selected > on ? list->selected + on : last;
}

bool top_list_move(struct top_list *list, enum top_command command, size_t height)
{
	size_t page = height > 1 ? height - 1 : 1;

	switch (command) {
	case TOP_UP:
		step(list, 1, 0);
		break;
	case TOP_DOWN:
		step(list, 0, 1);
		break;
	case TOP_PAGE_UP:
		step(list, page, 0);
		break;
	case TOP_PAGE_DOWN:
		step(list, 0, page);
		break;
	case TOP_FIRST:
		step(list, SIZE_MAX, 0);
		break;
	case TOP_LAST:
		step(list, 0, SIZE_MAX);
		break;
	default:
		return false;
	}
	/* At the top, the user wants to see the hottest line. */
	list->is_chosen = list->selected > 0;
	top_list_scroll(list, height);
	return true;
}

void top_list_update(struct top_list *list, size_t count, size_t height,
		     size_t (*find)(const void *context, uint64_t id), const void *context)
{
	size_t found = list->is_chosen ? find(context, list->id) : 0;

	list->count = count;
	if (found != SIZE_MAX)
		list->selected = found;
	if (list->selected >= count)
		list->selected = count ? count - 1 : 0;
	top_list_scroll(list, height);
}
