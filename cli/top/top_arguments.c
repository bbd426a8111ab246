/* SPDX-License-Identifier: MIT */
/* The command line of ljtop. */
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"

#define PROGRAM "ljtop"

enum {
	ITERATIONS_MAX = 1000000000,
	WIDTH_MIN = 40,
	WIDTH_MAX = 10000,
	ROWS_MAX = 1000000,
	WINDOW_MAX = 600,
};

static const char *const views[FORMAT_LIVE_VIEW_COUNT] = {
	[FORMAT_LIVE_FUNCTIONS] = "functions",	 [FORMAT_LIVE_LINES] = "lines",
	[FORMAT_LIVE_MODULES] = "modules",	 [FORMAT_LIVE_TRACES] = "traces",
	[FORMAT_LIVE_COROUTINES] = "coroutines", [FORMAT_LIVE_THREADS] = "threads",
	[FORMAT_LIVE_PROCESSES] = "processes",
};

static const char *const orders[FORMAT_LIVE_ORDER_COUNT] = {
	[FORMAT_LIVE_SELF] = "self",
	[FORMAT_LIVE_TOTAL] = "total",
	[FORMAT_LIVE_WINDOW_SELF] = "window-self",
	[FORMAT_LIVE_WINDOW_TOTAL] = "window-total",
	[FORMAT_LIVE_NAME] = "name",
};

static void print_help(void)
{
	puts("Usage: ljtop [OPTION]... --pid PID[,PID]...\n"
	     "       ljtop [OPTION]... --name PATTERN\n"
	     "Show where running LuaJIT processes spend their time, while they run, on the full\n"
	     "screen: h shows the keys.\n"
	     "\n"
	     "  -p, --pid PID[,PID]... watch these processes; may be given several times\n"
	     "      --name PATTERN     watch processes whose name or program matches PATTERN, an\n"
	     "                         extended regular expression as for pgrep, also ones that\n"
	     "                         start later; may be given several times\n"
	     "      --children         watch their descendants, too\n"
	     "  -F, --frequency HZ     samples per second and thread, 1 to 10000 (default 199)\n"
	     "  -w, --wall             sample waiting threads, too, by wall clock instead of\n"
	     "                         processor time; their leaf is the call that they wait in\n"
	     "      --capture HOW      how samples are taken: auto (default), kernel or stop, as\n"
	     "                         for ljrecord\n"
	     "      --delay SECONDS    between two refreshes, 0.1 to 3600 (default 1)\n"
	     "      --window COUNT     refreshes that the window spans, 1 to 600 (default 10)\n"
	     "  -d, --duration SECONDS stop after SECONDS (default: when interrupted, or when all\n"
	     "                         processes have ended)\n"
	     "  -b, --batch            no full screen: print plain ones, one at each refresh\n"
	     "      --json             print one JSON object at each refresh, each on its line\n"
	     "  -n, --iterations COUNT stop after COUNT refreshes\n"
	     "      --view VIEW        first view: functions (default), lines, modules, traces,\n"
	     "                         coroutines, threads or processes\n"
	     "      --sort ORDER       self (default), total, window-self, window-total or name\n"
	     "      --filter TEXT      show rows whose name or location contains TEXT, in any "
	     "case\n"
	     "      --no-native        hide native functions; their samples count to their "
	     "callers\n"
	     "  -M, --no-mouse         leave the mouse to the terminal\n"
	     "      --rows COUNT       rows of the table (default 40, 0 for all)\n"
	     "      --width COLUMNS    of a plain screen, 40 to 10000 (default 120)\n"
	     "  -h, --help             this text\n"
	     "  -V, --version          the version\n"
	     "\n"
	     "Exit codes: 0 done, 1 usage, 2 not permitted or already traced, 3 no LuaJIT in any\n"
	     "process, 4 output failed, 5 no such process, or all ended before the first sample,\n"
	     "6 other failure of the system.");
}

/* ---- Values ----------------------------------------------------------------------------- */

static bool parse_word(const char *text, const char *const *words, int count, int *ret_index)
{
	for (int i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0) {
			*ret_index = i;
			return true;
		}
	return false;
}

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_pids(struct arguments *arguments, const char *list)
{
	bool good =
		options_add_pids(PROGRAM, list, &arguments->pids, &arguments->options.pid_count);

	arguments->options.pids = arguments->pids;
	return good;
}

static bool take_name(struct arguments *arguments, const char *pattern)
{
	bool good = options_add_name(PROGRAM, pattern, &arguments->names,
				     &arguments->options.name_count);

	arguments->options.names = arguments->names;
	return good;
}

static bool take_children(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->options.children = true;
	return true;
}

static bool take_frequency(struct arguments *arguments, const char *text)
{
	return options_rate(text, &arguments->options.rate_hz);
}

static bool take_wall(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->options.wall = true;
	return true;
}

static bool take_capture(struct arguments *arguments, const char *text)
{
	return options_capture(text, &arguments->options.capture);
}

static bool take_delay(struct arguments *arguments, const char *text)
{
	return options_seconds(text, 0.1, 3600, &arguments->delay_s);
}

static bool take_window(struct arguments *arguments, const char *text)
{
	long number;

	if (!options_number(text, 1, WINDOW_MAX, &number))
		return false;
	arguments->live.window = (uint32_t)number;
	return true;
}

static bool take_duration(struct arguments *arguments, const char *text)
{
	return options_seconds(text, DURATION_MIN_S, DURATION_MAX_S,
			       &arguments->options.duration_s);
}

static bool take_batch(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->batch = true;
	return true;
}

static bool take_json(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->json = true;
	return true;
}

static bool take_iterations(struct arguments *arguments, const char *text)
{
	return options_number(text, 1, ITERATIONS_MAX, &arguments->iterations);
}

static bool take_view(struct arguments *arguments, const char *text)
{
	int view;

	if (!parse_word(text, views, FORMAT_LIVE_VIEW_COUNT, &view))
		return false;
	arguments->query.view = (enum format_live_view)view;
	return true;
}

static bool take_order(struct arguments *arguments, const char *text)
{
	int order;

	if (!parse_word(text, orders, FORMAT_LIVE_ORDER_COUNT, &order))
		return false;
	arguments->query.order = (enum format_live_order)order;
	return true;
}

static bool take_filter(struct arguments *arguments, const char *text)
{
	arguments->query.filter = text;
	return true;
}

static bool take_no_native(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->query.no_natives = true;
	return true;
}

static bool take_no_mouse(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->no_mouse = true;
	return true;
}

static bool take_rows(struct arguments *arguments, const char *text)
{
	return options_number(text, 0, ROWS_MAX, &arguments->rows);
}

static bool take_width(struct arguments *arguments, const char *text)
{
	return options_number(text, WIDTH_MIN, WIDTH_MAX, &arguments->width);
}

static bool take_help(struct arguments *arguments, const char *text)
{
	(void)arguments, (void)text;
	print_help();
	exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_PROFILE);
}

static bool take_version(struct arguments *arguments, const char *text)
{
	(void)arguments, (void)text;
	puts(PROGRAM " " LJPROF_VERSION);
	exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_PROFILE);
}

static const struct choice choices[] = {
	{ "pid", 'p', take_pids, "not a process id:" },
	{ "name", 0, take_name, "not an extended regular expression:" },
	{ "children", 0, take_children, .is_alone = true },
	{ "frequency", 'F', take_frequency, "not a frequency from 1 to 10000 Hz:" },
	{ "wall", 'w', take_wall, .is_alone = true },
	{ "capture", 0, take_capture, "not a way to take samples (auto, kernel or stop):" },
	{ "delay", 0, take_delay, "not a number of seconds from 0.1 to 3600:" },
	{ "window", 0, take_window, "not a number of refreshes from 1 to 600:" },
	{ "duration", 'd', take_duration, "not a number of seconds:" },
	{ "batch", 'b', take_batch, .is_alone = true },
	{ "json", 0, take_json, .is_alone = true },
	{ "iterations", 'n', take_iterations, "not a number of refreshes:" },
	{ "view", 0, take_view, "not a view:" },
	{ "sort", 0, take_order, "not an order:" },
	{ "filter", 0, take_filter },
	{ "no-native", 0, take_no_native, .is_alone = true },
	{ "no-mouse", 'M', take_no_mouse, .is_alone = true },
	{ "rows", 0, take_rows, "not a number of rows:" },
	{ "width", 0, take_width, "not a number of columns from 40 to 10000:" },
	{ "help", 'h', take_help, .is_alone = true },
	{ "version", 'V', take_version, .is_alone = true },
};

static const struct options options = { .program = PROGRAM,
					.choices = choices,
					.count = sizeof(choices) / sizeof(choices[0]) };

int top_arguments_parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret >= 0)
		return ret;
	if (first < argc)
		return options_refuse(PROGRAM, "unexpected argument", argv[first]);
	if (!ret_arguments->pids && !ret_arguments->names)
		return options_refuse(PROGRAM, "nothing to watch: give --pid PID or --name PATTERN",
				      NULL);
	if (ret_arguments->options.wall && ret_arguments->options.capture == DAEMON_CAPTURE_KERNEL)
		return options_refuse(PROGRAM,
				      "--capture=kernel goes without --wall: the kernel copies "
				      "threads that run",
				      NULL);
	if (ret_arguments->batch && ret_arguments->json)
		return options_refuse(PROGRAM, "give either --batch or --json, not both", NULL);
	return -1;
}

void top_arguments_deinit(struct arguments *arguments)
{
	free(arguments->pids);
	free(arguments->names);
}
