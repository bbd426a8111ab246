/* SPDX-License-Identifier: MIT */
/* The rows of layouts.table. */
#include <stddef.h>

#define LUASTATE_LAYOUT_ROWS
#include "luastate/state/state.h"
