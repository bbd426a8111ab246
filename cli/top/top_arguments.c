/* SPDX-License-Identifier: MIT */
/* What does the command line of ljtop say? */
#include <stdlib.h>

#include "cli/processes/operands.h"
#include "cli/top/top.h"

#define PROGRAM "ljtop"

enum {
	ITERATIONS_MAX = 1000000000,
	WIDTH_MIN = 40,
	WIDTH_MAX = 10000,
	ROWS_MAX = 1000000,
	WINDOW_MAX = 600,
};

static const struct options_word views[] = {
	{ "functions", "default", FORMAT_LIVE_FUNCTIONS }, { "lines", NULL, FORMAT_LIVE_LINES },
	{ "modules", NULL, FORMAT_LIVE_MODULES },	   { "traces", NULL, FORMAT_LIVE_TRACES },
	{ "coroutines", NULL, FORMAT_LIVE_COROUTINES },	   { "threads", NULL, FORMAT_LIVE_THREADS },
	{ "processes", NULL, FORMAT_LIVE_PROCESSES },	   { 0 },
};

static const struct options_word orders[] = {
	{ "self", "default", FORMAT_LIVE_SELF },
	{ "total", NULL, FORMAT_LIVE_TOTAL },
	{ "window-self", NULL, FORMAT_LIVE_WINDOW_SELF },
	{ "window-total", NULL, FORMAT_LIVE_WINDOW_TOTAL },
	{ "name", NULL, FORMAT_LIVE_NAME },
	{ 0 },
};

static const struct options_word natives[] = {
	{ "program", "the program's own (default)", FORMAT_NATIVE_PROGRAM },
	{ "all", "all", FORMAT_NATIVE_ALL },
	{ "none", "none; their samples count for their callers", FORMAT_NATIVE_NONE },
	{ 0 },
};

static const struct options_entry entries[] = {
	{ "pid", 'p', OPTIONS_PIDS, "PID[,PID]...", "watch these processes", .section = "Processes",
	  .is_repeated = true, OPTIONS_INTO(pids), .refused = "not a process id" },
	{ "name", 0, OPTIONS_NAME, "PATTERN",
	  "watch processes whose name or program matches PATTERN, an extended regular expression "
	  "as for pgrep, also ones that start later",
	  .is_repeated = true, OPTIONS_INTO(names),
	  .refused = "not an extended regular expression" },
	{ "children", .help = "watch their descendants, too", OPTIONS_INTO(options.children) },
	{ "list", .help = "list the LuaJIT processes and end; with --json as one JSON object",
	  .excludes = "pid name children batch", OPTIONS_INTO(lists) },

	{ "view", 0, OPTIONS_WORD, "VIEW", "first view", .section = "Screen", .words = views,
	  OPTIONS_INTO(query.view), .refused = "not a view" },
	{ "sort", 0, OPTIONS_WORD, "ORDER", "order of the rows", .words = orders,
	  OPTIONS_INTO(query.order), .refused = "not an order" },
	{ "filter", 0, OPTIONS_TEXT, "TEXT",
	  "show rows whose name or location contains TEXT, in any case",
	  OPTIONS_INTO(query.filter) },
	{ "native", 0, OPTIONS_WORD, "WHICH", "which native functions to show", .words = natives,
	  OPTIONS_INTO(query.native), .refused = "not a choice of native functions" },
	{ "delay", 0, OPTIONS_TIME, "TIME", "time between two refreshes, 100ms to 1h (default 1s)",
	  .min = 0.1, .max = 3600, OPTIONS_INTO(delay_s),
	  .refused = "not a time from 100ms to 1h" },
	{ "window", 0, OPTIONS_NUMBER, "COUNT",
	  "refreshes that the window spans, 1 to 600 (default 10)", .min = 1, .max = WINDOW_MAX,
	  OPTIONS_INTO(live.window), .refused = "not a number of refreshes from 1 to 600" },
	{ "no-mouse", 'M', .help = "leave the mouse to the terminal", OPTIONS_INTO(no_mouse) },

	{ "batch", 'b', .help = "print plain screens, one at each refresh",
	  .section = "Without the full screen", .excludes = "json", OPTIONS_INTO(batch) },
	{ "json", .help = "print one JSON object at each refresh, each on its line",
	  OPTIONS_INTO(json) },
	{ "iterations", 'n', OPTIONS_NUMBER, "COUNT", "stop after COUNT refreshes", .min = 1,
	  .max = ITERATIONS_MAX, OPTIONS_INTO(iterations), .refused = "not a number of refreshes" },
	{ "top", 0, OPTIONS_NUMBER, "COUNT", "rows of the table, 0 for all (default 40)",
	  .max = ROWS_MAX, OPTIONS_INTO(rows), .refused = "not a number of rows" },
	{ "rows", .old_of = "top" },
	{ "width", 0, OPTIONS_NUMBER, "COLUMNS",
	  "width of a plain screen, 40 to 10000 (default 120)", .min = WIDTH_MIN, .max = WIDTH_MAX,
	  OPTIONS_INTO(width), .refused = "not a number of columns from 40 to 10000" },

	{ "duration", 'd', OPTIONS_TIME, "TIME",
	  "stop after TIME: 500ms, 30s or 30, 5m, 1h (default: when interrupted, or when all "
	  "processes have ended)",
	  .section = "Samples", .min = DURATION_MIN_S, .max = DURATION_MAX_S,
	  OPTIONS_INTO(options.duration_s), .refused = RECORDING_NO_TIME },
	{ "frequency", 'F', OPTIONS_NUMBER, "HZ",
	  "samples per second and thread, 1 to 10000 (default 199)", .min = 1, .max = RATE_MAX_HZ,
	  OPTIONS_INTO(options.rate_hz), .refused = "not a frequency from 1 to 10000 Hz" },
	{ "wall", 'w',
	  .help = "sample waiting threads, too, by wall clock instead of processor time; their "
		  "leaf is the call that they wait in",
	  OPTIONS_INTO(options.wall) },
	{ "capture", 0, OPTIONS_WORD, "HOW", "how samples are taken", .words = recording_captures,
	  OPTIONS_INTO(options.capture), .refused = "not a way to take samples" },
};

static const char *const usage[] = {
	"[OPTION]... [PID|NAME]...",
	"[OPTION]... --name PATTERN",
	"--list [--json]",
	NULL,
};

static const struct options options = {
	.program = PROGRAM,
	.usage = usage,
	.about = "Show where running LuaJIT processes spend their time, while they run, on the "
		 "full screen: h shows the keys. Without a process it shows a list to choose from.",
	.operand = OPTIONS_PROCESSES,
	.ending = "Exit codes: 0 done, 1 usage, 2 not permitted or already traced, 3 no LuaJIT in "
		  "any process, 4 output failed, 5 no such process, or all ended before the first "
		  "sample, 6 other failure of the system.",
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
};

int top_arguments_parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret >= 0)
		return ret;
	if (first < argc && ret_arguments->lists)
		return options_refuse(PROGRAM, "--list takes no process, such as", argv[first]);
	ret = operands_take(PROGRAM, argv + first, argc - first, &ret_arguments->pids,
			    &ret_arguments->names);
	if (ret >= 0)
		return ret;
	if (ret_arguments->options.wall && ret_arguments->options.capture == DAEMON_CAPTURE_KERNEL)
		return options_refuse(PROGRAM,
				      "--capture=kernel goes without --wall: the kernel copies "
				      "only running threads",
				      NULL);
	/* Descendants may run LuaJIT where the process does not. */
	return ret_arguments->options.children
		       ? -1
		       : operands_check(PROGRAM, &ret_arguments->names, NULL);
}

void top_arguments_use_processes(struct arguments *arguments)
{
	arguments->options.pids = arguments->pids.pids;
	arguments->options.pid_count = arguments->pids.count;
	arguments->options.names = arguments->names.patterns;
	arguments->options.name_count = arguments->names.count;
}

void top_arguments_deinit(struct arguments *arguments)
{
	free(arguments->pids.pids);
	options_names_deinit(&arguments->names);
}
