/* SPDX-License-Identifier: MIT */
/* Where are the rows of layouts.table? The build turns them into C. */
#include <stddef.h>

#define LUASTATE_LAYOUT_ROWS
#include "luastate/layout/layout.h"

bool state_is_row(const struct luastate_layout *layout)
{
	return layout >= luastate_layouts && layout < luastate_layouts + luastate_layout_count;
}
