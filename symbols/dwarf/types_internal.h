/* SPDX-License-Identifier: MIT */
/* Private to symbols: types with a time of the caller's. */
#ifndef SYMBOLS_DWARF_TYPES_INTERNAL_H
#define SYMBOLS_DWARF_TYPES_INTERNAL_H

#include "symbols/types.h"

/** symbols_types_create() with the processor time that listing and all answers may take. */
int symbols_types_create_within(struct symbols_space *space, uint64_t address, const char *anchor,
				uint64_t work_ns, struct symbols_types **ret_types,
				struct failure *why);

#endif
