/* SPDX-License-Identifier: MIT */
/* The command line of ljrecord. */
#include "cli/record/record_arguments.h"

#include "cli/record/outputs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "ljrecord"

/** Files shorter than that are for nobody. */
#define ROTATE_MIN_S 1

/** The names of all that are kept are known. */
enum { KEEP_MAX = 10000 };

static void print_help(void)
{
	puts("Usage: ljrecord [OPTION]... --pid PID[,PID]...\n"
	     "       ljrecord [OPTION]... --name PATTERN\n"
	     "       ljrecord [OPTION]... -- COMMAND [ARGUMENT]...\n"
	     "Profile running LuaJIT processes from outside and write the profile to a file.\n"
	     "\n"
	     "  -p, --pid PID[,PID]... record these processes; may be given several times\n"
	     "  -n, --name PATTERN     record processes whose name or program matches PATTERN, an\n"
	     "                         extended regular expression as for pgrep; may be given\n"
	     "                         several times\n"
	     "      --children         record their descendants, too\n"
	     "      --root WHICH       outermost frame of each chain: none (default), or process,\n"
	     "                         such as nginx [4711]\n"
	     "      --wait SECONDS     wait up to SECONDS for a matching LuaJIT process\n"
	     "  -o, --output FILE      write the profile to FILE (default ljprof.bin, - for "
	     "stdout;\n"
	     "                         compressed if its name ends in .gz); may be given several\n"
	     "                         times, for several formats of one recording\n"
	     "      --rotate TIME      begin a new file every TIME (60, 60s, 5m or 1h); its name\n"
	     "                         has the start time in UTC: out-20261122T235959.pb.gz\n"
	     "      --keep NUMBER      with --rotate, keep the newest NUMBER files\n"
	     "  -d, --duration SECONDS stop after SECONDS (default: when interrupted, or when all\n"
	     "                         processes have ended)\n"
	     "      --limit-samples NUMBER  stop after NUMBER samples\n"
	     "      --limit-bytes SIZE stop when the largest output has SIZE bytes (5000, 64K, "
	     "10M\n"
	     "                         or 2G); needs a stream or --rotate\n"
	     "  -F, --frequency HZ     samples per second and thread, 1 to 10000 (default 99)\n"
	     "  -w, --wall             sample waiting threads, too, by wall clock instead of\n"
	     "                         processor time; their leaf is the call that they wait in\n"
	     "      --capture HOW      kernel: the kernel copies each running thread at its "
	     "ticks,\n"
	     "                         no thread is stopped; stop: stop it for some tens of\n"
	     "                         microseconds; auto (default): kernel if possible (root,\n"
	     "                         Linux 5.17, not with --wall or --save-images); threads\n"
	     "                         whose copies are too incomplete are stopped\n"
	     "  -m, --mode MODE        callgraph (default): whole chains; leaf: the leaf frames;\n"
	     "                         default: counters of VM states only\n"
	     "  -f, --format FORMAT    format of the profile (default: as the ending of FILE "
	     "tells):");
	for (size_t i = 0; format_writers[i]; i++)
		printf("                           %-11s %s%s\n", format_writers[i]->name,
		       format_writers[i]->description, i == 0 ? " (else)" : "");
	puts("      --lines WHICH      line of a Lua frame: current (default), or function for\n"
	     "                         the line where the function begins\n"
	     "      --trace-samples WHICH  what a sample in compiled code holds: full (default) "
	     "for\n"
	     "                         its call chain, or record for the trace's number and place\n"
	     "                         alone, as Tarantool's profiler has it\n"
	     "      --stats FILE       write the summary's numbers to FILE as JSON\n"
	     "      --save-images DIR  keep what each stop read, one file a stop, in DIR\n"
	     "      --debuginfod       fetch debug files of stripped code from the servers of\n"
	     "                         DEBUGINFOD_URLS before the recording; not with a command\n"
	     "      --explain          record nothing; show how LuaJIT was recognized in the\n"
	     "                         processes given with --pid, or why it was not\n"
	     "  -q, --quiet            no progress line and no summary\n"
	     "  -h, --help             this text\n"
	     "  -V, --version          the version\n"
	     "\n"
	     "SIGUSR1 writes the profile so far; with --rotate it begins new files.\n"
	     "\n"
	     "Exit codes: 0 profile written, 1 usage, 2 not permitted or already traced,\n"
	     "3 no LuaJIT in any process, 4 output failed, 5 no such process, or all ended before\n"
	     "the first sample, or the wait for one was interrupted, 6 other failure of the "
	     "system.");
}

int arguments_refuse(const char *text, const char *argument)
{
	return options_refuse(PROGRAM, text, argument);
}

/* ---- Values ----------------------------------------------------------------------------- */

static bool parse_mode(const char *text, enum daemon_mode *ret_mode)
{
	static const char *const names[] = { [DAEMON_MODE_DEFAULT] = "default",
					     [DAEMON_MODE_LEAF] = "leaf",
					     [DAEMON_MODE_CALLGRAPH] = "callgraph" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_mode = (enum daemon_mode)i;
			return true;
		}
	return false;
}

static bool parse_lines(const char *text, bool *ret_first)
{
	*ret_first = strcmp(text, "function") == 0;
	return *ret_first || strcmp(text, "current") == 0;
}

static bool parse_trace_samples(const char *text, bool *ret_records)
{
	*ret_records = strcmp(text, "record") == 0;
	return *ret_records || strcmp(text, "full") == 0;
}

static bool parse_root(const char *text, bool *ret_process)
{
	*ret_process = strcmp(text, "process") == 0;
	return *ret_process || strcmp(text, "none") == 0;
}

static bool add_pids(struct arguments *arguments, const char *list)
{
	bool good =
		options_add_pids(PROGRAM, list, &arguments->pids, &arguments->options.pid_count);

	arguments->options.pids = arguments->pids;
	return good;
}

static bool add_name(struct arguments *arguments, const char *pattern)
{
	bool good = options_add_name(PROGRAM, pattern, &arguments->names,
				     &arguments->options.name_count);

	arguments->options.names = arguments->names;
	return good;
}

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_children(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->options.children = true;
	return true;
}

static bool take_root(struct arguments *arguments, const char *text)
{
	return parse_root(text, &arguments->options.process_root);
}

static bool take_output(struct arguments *arguments, const char *text)
{
	return outputs_add(arguments, text);
}

static bool take_duration(struct arguments *arguments, const char *text)
{
	return options_seconds(text, DURATION_MIN_S, DURATION_MAX_S,
			       &arguments->options.duration_s);
}

static bool take_wait(struct arguments *arguments, const char *text)
{
	return options_seconds(text, 0, DURATION_MAX_S, &arguments->options.wait_s);
}

static bool take_rotate(struct arguments *arguments, const char *text)
{
	return options_time(text, ROTATE_MIN_S, DURATION_MAX_S, &arguments->options.rotate_s);
}

static bool take_keep(struct arguments *arguments, const char *text)
{
	long number;

	if (!options_number(text, 1, KEEP_MAX, &number))
		return false;
	arguments->options.keep = (unsigned)number;
	return true;
}

static bool take_limit_samples(struct arguments *arguments, const char *text)
{
	long number;

	if (!options_number(text, 1, LONG_MAX, &number))
		return false;
	arguments->options.limit_samples = (uint64_t)number;
	return true;
}

static bool take_limit_bytes(struct arguments *arguments, const char *text)
{
	return options_size(text, &arguments->options.limit_bytes);
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

static bool take_mode(struct arguments *arguments, const char *text)
{
	return parse_mode(text, &arguments->options.mode);
}

static bool take_format(struct arguments *arguments, const char *text)
{
	arguments->format = format_writer_find(text);
	return arguments->format != NULL;
}

static bool take_lines(struct arguments *arguments, const char *text)
{
	return parse_lines(text, &arguments->options.format_options.first_lines);
}

static bool take_trace_samples(struct arguments *arguments, const char *text)
{
	return parse_trace_samples(text, &arguments->options.format_options.trace_records);
}

static bool take_stats(struct arguments *arguments, const char *text)
{
	arguments->stats = text;
	return true;
}

static bool take_images(struct arguments *arguments, const char *text)
{
	arguments->options.save_images = text;
	return true;
}

static bool take_debuginfod(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->options.debuginfod = true;
	return true;
}

static bool take_explain(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->explain = true;
	return true;
}

static bool take_quiet(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->quiet = true;
	return true;
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
	puts("ljrecord " LJPROF_VERSION);
	exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_PROFILE);
}

static const struct choice choices[] = {
	{ "pid", 'p', add_pids, "not a process id:" },
	{ "name", 'n', add_name, "not an extended regular expression:" },
	{ "children", 0, take_children, .is_alone = true },
	{ "root", 0, take_root, "not a choice of roots (none or process):" },
	{ "wait", 0, take_wait, "not a number of seconds:" },
	{ "output", 'o', take_output, "more outputs than 16:" },
	{ "rotate", 0, take_rotate, "not a time of a second or more, such as 60, 60s, 5m or 1h:" },
	{ "keep", 0, take_keep, "not a number of files from 1 to 10000:" },
	{ "duration", 'd', take_duration, "not a number of seconds:" },
	{ "limit-samples", 0, take_limit_samples, "not a number of samples:" },
	{ "limit-bytes", 0, take_limit_bytes, "not a size, such as 5000, 64K, 10M or 2G:" },
	{ "frequency", 'F', take_frequency, "not a frequency from 1 to 10000 Hz:" },
	{ "wall", 'w', take_wall, .is_alone = true },
	{ "capture", 0, take_capture, "not a way to take samples (auto, kernel or stop):" },
	{ "mode", 'm', take_mode, "unknown mode:" },
	{ "format", 'f', take_format, "unknown format:" },
	{ "lines", 0, take_lines, "not a choice of lines (current or function):" },
	{ "trace-samples", 0, take_trace_samples,
	  "not a choice of samples in compiled code (full or record):" },
	{ "stats", 0, take_stats },
	{ "save-images", 0, take_images },
	{ "debuginfod", 0, take_debuginfod, .is_alone = true },
	{ "explain", 0, take_explain, .is_alone = true },
	{ "quiet", 'q', take_quiet, .is_alone = true },
	{ "help", 'h', take_help, .is_alone = true },
	{ "version", 'V', take_version, .is_alone = true },
};

static const struct options options = { .program = PROGRAM,
					.choices = choices,
					.count = sizeof(choices) / sizeof(choices[0]) };

/* The first output that is no stream; NULL: none. */
static const struct format_writer_ops *first_whole(const struct daemon_options *recording)
{
	for (size_t i = 0; i < recording->output_count; i++)
		if (recording->outputs[i].format->is_buffered)
			return recording->outputs[i].format;
	return NULL;
}

static bool has_stream(const struct daemon_options *recording)
{
	for (size_t i = 0; i < recording->output_count; i++)
		if (!recording->outputs[i].format->is_buffered)
			return true;
	return false;
}

/* Of what is to be written where. @return as arguments_parse(). */
static int check_files(const struct daemon_options *recording)
{
	const struct format_writer_ops *whole = first_whole(recording);

	if (recording->format_options.trace_records && whole)
		return arguments_refuse("--trace-samples record goes with sysprof alone, not with",
					whole->name);
	if (recording->keep && recording->rotate_s <= 0)
		return arguments_refuse("--keep goes with --rotate", NULL);
	if (recording->limit_bytes && recording->rotate_s <= 0 && !has_stream(recording))
		return arguments_refuse("--limit-bytes counts what was written: it takes an output "
					"in the format sysprof, or --rotate, not only",
					whole->name);
	return -1;
}

/* What goes together. @return as arguments_parse(). */
static int check(const struct arguments *arguments)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (!arguments->command && !arguments->pids && !arguments->names)
		return arguments_refuse(
			"nothing to record: give --pid PID, --name PATTERN or a command", NULL);
	if (arguments->command && (arguments->pids || arguments->names))
		return arguments_refuse("give either --pid and --name or a command, not both",
					NULL);
	if (arguments->options.wait_s > 0 && (arguments->command || arguments->explain))
		return arguments_refuse("--wait goes with --pid or --name, and a recording", NULL);
	if (arguments->options.debuginfod && arguments->command)
		return arguments_refuse(
			"--debuginfod goes with --pid or --name: a command has nothing mapped "
			"yet",
			NULL);
	if (arguments->options.wall && arguments->options.mode == DAEMON_MODE_DEFAULT)
		return arguments_refuse("--wall goes with --mode callgraph or leaf: a thread that "
					"waits is in no VM state",
					NULL);
	if (arguments->options.wall && arguments->options.capture == DAEMON_CAPTURE_KERNEL)
		return arguments_refuse("--capture=kernel goes without --wall: the kernel copies "
					"threads that run",
					NULL);
	if (arguments->options.debuginfod && (!servers || !*servers))
		return arguments_refuse("--debuginfod needs servers in DEBUGINFOD_URLS", NULL);
	return check_files(&arguments->options);
}

int arguments_parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret >= 0)
		return ret;
	if (first < argc)
		ret_arguments->command = argv + first;
	ret = outputs_choose_formats(ret_arguments);
	return ret >= 0 ? ret : check(ret_arguments);
}

void arguments_deinit(struct arguments *arguments)
{
	free(arguments->pids);
	free(arguments->names);
}
