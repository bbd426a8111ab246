/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "format/writers.h"

const struct format_writer_ops *const format_writers[] = { &format_sysprof_ops, NULL };

const struct format_writer_ops *format_writer_find(const char *name)
{
	for (size_t i = 0; format_writers[i]; i++)
		if (strcmp(format_writers[i]->name, name) == 0)
			return format_writers[i];
	return NULL;
}

const char *format_state_name(enum format_state state)
{
	static const char *const names[FORMAT_STATE_COUNT] = {
		"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD", "OPT", "ASM", "TRACE",
	};

	return (unsigned)state < FORMAT_STATE_COUNT ? names[state] : "UNKNOWN";
}
