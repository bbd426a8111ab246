/* SPDX-License-Identifier: MIT */
/* What the states of a VM are called. */
#include "format/sample.h"

const char *format_state_name(enum format_state state)
{
	static const char *const names[FORMAT_STATE_COUNT] = {
		"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD", "OPT", "ASM", "TRACE",
	};

	return (unsigned)state < FORMAT_STATE_COUNT ? names[state] : "UNKNOWN";
}
