/* SPDX-License-Identifier: MIT */
/* Private to symbols: how do tests list types with another time limit? */
#ifndef SYMBOLS_DWARF_TYPES_INTERNAL_H
#define SYMBOLS_DWARF_TYPES_INTERNAL_H

#include "symbols/types.h"

/** symbols_types_create() with a limit of processor time for listing and all answers. */
int symbols_types_create_within(struct symbols_space *space, uint64_t address, const char *anchor,
				uint64_t work_ns, struct symbols_types **ret_types,
				struct failure *why);

#endif
