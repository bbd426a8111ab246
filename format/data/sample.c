/* SPDX-License-Identifier: MIT */
/* What are the names of states and kinds, and what is a share of samples? */
#include "format/sample.h"

const char *format_state_name(enum format_state state)
{
	static const char *const names[FORMAT_STATE_COUNT] = {
		"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD", "OPT", "ASM", "TRACE",
	};

	return (unsigned)state < FORMAT_STATE_COUNT ? names[state] : "UNKNOWN";
}

const char *format_kind_name(enum format_kind kind)
{
	static const char *const names[FORMAT_KIND_COUNT] = {
		"native", "Lua", "built-in", "C", "trace", "activity", "process", "LuaJIT",
	};

	return (unsigned)kind < FORMAT_KIND_COUNT ? names[kind] : "?";
}

double format_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}
