/* SPDX-License-Identifier: MIT */
/* What do the compiler's numbers mean? */
#include "luastate/jit_report.h"

#include "luastate/luastate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *luastate_trace_kind_name(enum luastate_trace_kind kind)
{
	static const char *const names[] = {
		[LUASTATE_TRACE_LOOP] = "loop",	    [LUASTATE_TRACE_FUNCTION] = "function",
		[LUASTATE_TRACE_RETURN] = "return", [LUASTATE_TRACE_STITCHED] = "stitched",
		[LUASTATE_TRACE_SIDE] = "side",	    [LUASTATE_TRACE_OTHER] = "other",
	};

	return (size_t)kind < COUNT(names) ? names[kind] : "?";
}

const char *luastate_trace_link_name(unsigned linktype)
{
	static const char *const names[] = { "none",	       "root",	       "loop",
					     "tail-recursion", "up-recursion", "down-recursion",
					     "interpreter",    "return",       "stitch" };

	return linktype < COUNT(names) ? names[linktype] : "?";
}

/* In the order of LuaJIT's own list, which has not changed since 2015 (a3a6866d). */
static const struct {
	const char *name, *text;
} aborts[] = {
	{ "RECERR", "an error or a hook interrupted recording" },
	{ "TRACEUV", "it would be too short" },
	{ "TRACEOV", "it is longer than maxrecord" },
	{ "STACKOV", "it uses too many stack slots" },
	{ "SNAPOV", "it has more exits than maxsnap" },
	{ "BLACKL", "it meets blacklisted code" },
	{ "RETRY", "recording starts again" },
	{ "NYIBC", "a bytecode instruction is not compiled" },
	{ "LLEAVE", "it leaves its loop" },
	{ "LINNER", "it meets an inner loop" },
	{ "LUNROLL", "a loop was unrolled too often" },
	{ "BADTYPE", "an argument has a wrong type" },
	{ "CJITOFF", "it meets a function with the JIT off" },
	{ "CUNROLL", "a call was unrolled too often" },
	{ "DOWNREC", "it starts again, down a recursion" },
	{ "NYIFFU", "a built-in is not compiled with these arguments" },
	{ "NYIRETL", "it returns below the frame where it began" },
	{ "STORENN", "it stores with a key that is nil or NaN" },
	{ "NOMM", "a metamethod is missing" },
	{ "IDXLOOP", "an index look-up loops" },
	{ "NYITMIX", "a table is sparse and dense at once" },
	{ "NOCACHE", "a C symbol was not looked up yet" },
	{ "NYICONV", "a conversion of C types is not compiled" },
	{ "NYICALL", "a type of C function is not compiled" },
	{ "GFAIL", "a guard would fail each time" },
	{ "PHIOV", "a loop carries too many values" },
	{ "TYPEINS", "types change in each iteration of the loop" },
	{ "MCODEAL", "no memory for machine code" },
	{ "MCODEOV", "its machine code is too long" },
	{ "MCODELM", "an area of machine code is full" },
	{ "SPILLOV", "it needs too many spill slots" },
	{ "BADRA", "registers cannot be assigned" },
	{ "NYIIR", "an IR instruction is not assembled" },
	{ "NYIPHI", "values of a loop cannot be shuffled" },
	{ "NYICOAL", "registers cannot be coalesced" },
};

const char *luastate_abort_name(unsigned reason)
{
	return reason < COUNT(aborts) ? aborts[reason].name : "?";
}

const char *luastate_abort_text(unsigned reason)
{
	return reason < COUNT(aborts) ? aborts[reason].text : "?";
}

const char *luastate_param_name(unsigned index)
{
	static const char *const names[LUASTATE_PARAMS] = {
		"maxtrace",   "maxrecord",  "maxirconst", "maxside",   "maxsnap",
		"minstitch",  "hotloop",    "hotexit",	  "tryside",   "instunroll",
		"loopunroll", "callunroll", "recunroll",  "sizemcode", "maxmcode"
	};

	return index < LUASTATE_PARAMS ? names[index] : NULL;
}

const char *luastate_optimisation_name(unsigned index)
{
	static const char *const names[] = { "fold", "cse", "dce",  "fwd",  "dse", "narrow",
					     "loop", "abc", "sink", "fuse", "fma" };

	return index < COUNT(names) ? names[index] : NULL;
}
