/* SPDX-License-Identifier: MIT */
/* What does the command line of ljrecord say? */
#include "cli/record/record_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "cli/processes/choice.h"
#include "cli/processes/operands.h"
#include "cli/record/outputs.h"

#define PROGRAM "ljrecord"

/** Shorter files are useless. */
#define ROTATE_MIN_S 1

/** The file helper keeps the names of all these files in memory. */
enum { KEEP_MAX = 10000 };

int arguments_refuse(const char *text, const char *argument)
{
	return options_refuse(PROGRAM, text, argument);
}

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_output(struct arguments *arguments, const char *text)
{
	return outputs_add(arguments, text);
}

static bool take_format(struct arguments *arguments, const char *text)
{
	arguments->format = format_writer_find(text);
	return arguments->format != NULL;
}

static bool format_at(size_t index, struct options_word *ret_word)
{
	const struct format_writer_ops *format = format_writers[index];

	if (format)
		*ret_word = (struct options_word){ format->name, format->description };
	return format != NULL;
}

static const struct options_word roots[] = {
	{ "none", "the outermost function (default)", false },
	{ "process", "the process, such as nginx [4711]", true },
	{ 0 },
};

static const struct options_word modes[] = {
	{ "callgraph", "call chains (default)", DAEMON_MODE_CALLGRAPH },
	{ "leaf", "the leaf frames", DAEMON_MODE_LEAF },
	{ "default", "counters of VM states only", DAEMON_MODE_DEFAULT },
	{ 0 },
};

static const struct options_word lines[] = {
	{ "line", "the line that runs (default)", false },
	{ "function", "the line where the function begins", true },
	{ "current", NULL, false, .is_old = true },
	{ 0 },
};

static const struct options_word trace_samples[] = {
	{ "full", "its call chain (default)", false },
	{ "record", "only the trace's number and location, as Tarantool's profiler writes it",
	  true },
	{ 0 },
};

static const struct options_entry entries[] = {
	{ "pid", 'p', OPTIONS_PIDS, "PID[,PID]...", "record these processes",
	  .section = "Processes", .is_repeated = true, OPTIONS_INTO(pids),
	  .refused = "not a process id" },
	{ "name", 0, OPTIONS_NAME, "PATTERN",
	  "record processes whose name or program matches PATTERN, an extended regular "
	  "expression as for pgrep",
	  .is_repeated = true, OPTIONS_INTO(names),
	  .refused = "not an extended regular expression" },
	{ "children", .help = "record their descendants, too", OPTIONS_INTO(options.children) },
	{ "wait", 0, OPTIONS_TIME, "TIME", "wait up to TIME for a matching LuaJIT process",
	  .max = DURATION_MAX_S, OPTIONS_INTO(options.wait_s), .refused = RECORDING_NO_TIME },

	{ "output", 'o', OPTIONS_FILE, "FILE",
	  "write the profile to FILE (- for stdout), compressed if its name ends in .gz; without "
	  "this option to NAME-PID-DATE.pb.gz, and print its hottest ten lines",
	  .section = "Output and duration", .is_repeated = true, .take = take_output,
	  .refused = "more than 16 outputs" },
	{ "duration", 'd', OPTIONS_TIME, "TIME",
	  "stop after TIME: 500ms, 30s or 30, 5m, 1h (default: when interrupted, or when all "
	  "processes have ended)",
	  .min = DURATION_MIN_S, .max = DURATION_MAX_S, OPTIONS_INTO(options.duration_s),
	  .refused = RECORDING_NO_TIME },
	{ "format", 'f', OPTIONS_WORD, "FORMAT",
	  "format of the profile, see below (default: by the suffix of FILE, else pprof)",
	  .word_at = format_at, .words_section = "Formats", .take = take_format,
	  .refused = "unknown format" },
	{ "limit-samples", 0, OPTIONS_NUMBER, "NUMBER", "stop after NUMBER samples", .min = 1,
	  OPTIONS_INTO(options.limit_samples), .refused = "not a number of samples" },
	{ "limit-bytes", 0, OPTIONS_SIZE, "SIZE",
	  "stop when the largest output has SIZE bytes (5000, 64K, 10M or 2G); needs the format "
	  "sysprof or --rotate",
	  OPTIONS_INTO(options.limit_bytes),
	  .refused = "not a size, such as 5000, 64K, 10M or 2G" },
	{ "rotate", 0, OPTIONS_TIME, "TIME",
	  "begin a new file every TIME (60, 60s, 5m or 1h); its name has the start time in UTC: "
	  "out-20261122T235959.pb.gz",
	  .min = ROTATE_MIN_S, .max = DURATION_MAX_S, OPTIONS_INTO(options.rotate_s),
	  .refused = "not a time of a second or more, such as 60, 60s, 5m or 1h" },
	{ "keep", 0, OPTIONS_NUMBER, "NUMBER", "with --rotate, keep the newest NUMBER files",
	  .min = 1, .max = KEEP_MAX, OPTIONS_INTO(options.keep),
	  .refused = "not a number of files from 1 to 10000" },
	{ "stats", 0, OPTIONS_FILE, "FILE", "write the summary's numbers to FILE as JSON",
	  OPTIONS_INTO(stats) },
	{ "quiet", 'q', .help = "no progress line and no summary", OPTIONS_INTO(quiet) },

	{ "frequency", 'F', OPTIONS_NUMBER, "HZ",
	  "samples per second and thread, 1 to 10000 (default 99)", .section = "Samples", .min = 1,
	  .max = RATE_MAX_HZ, OPTIONS_INTO(options.rate_hz),
	  .refused = "not a frequency from 1 to 10000 Hz" },
	{ "wall", 'w',
	  .help = "sample waiting threads, too, by wall clock instead of processor time; their "
		  "leaf is the call that they wait in",
	  OPTIONS_INTO(options.wall) },
	{ "capture", 0, OPTIONS_WORD, "HOW", "how samples are taken", .words = recording_captures,
	  OPTIONS_INTO(options.capture), .refused = "not a way to take samples" },
	{ "mode", 'm', OPTIONS_WORD, "MODE", "what a sample holds", .words = modes,
	  OPTIONS_INTO(options.mode), .refused = "not a mode" },
	{ "roots", 0, OPTIONS_WORD, "WHICH", "outermost frame of each chain", .words = roots,
	  OPTIONS_INTO(options.process_root), .refused = "not a choice of roots" },
	{ "lines", 0, OPTIONS_WORD, "WHICH", "line of a Lua frame", .words = lines,
	  OPTIONS_INTO(options.format_options.first_lines), .refused = "not a choice of lines" },
	{ "trace-samples", 0, OPTIONS_WORD, "WHICH", "what a sample in compiled code holds",
	  .words = trace_samples, OPTIONS_INTO(options.format_options.trace_records),
	  .refused = "not a choice of samples in compiled code" },
	{ "save-images", 0, OPTIONS_FOLDER, "DIR",
	  "keep what each stop read, one file a stop, in DIR; --capture auto is stop then",
	  OPTIONS_INTO(options.save_images) },
	{ "debuginfod",
	  .help = "fetch debug files of stripped code from the servers of DEBUGINFOD_URLS before "
		  "the recording; not with a command",
	  OPTIONS_INTO(options.debuginfod) },

	{ "explain",
	  .help = "show how LuaJIT was recognized in the processes, or why it was not; record "
		  "nothing",
	  .section = "Other", OPTIONS_INTO(explain) },

	{ .letter = 'n', .old_of = "name" },
	{ "root", .old_of = "roots" },
};

static const char *const usage[] = {
	"[OPTION]... [PID|NAME]...",
	"[OPTION]... --name PATTERN",
	"[OPTION]... -- COMMAND [ARGUMENT]...",
	"--explain [PID|NAME]...",
	NULL,
};

static const struct options options = {
	.program = PROGRAM,
	.usage = usage,
	.about = "Profile running LuaJIT processes from outside and write the profile to a file, "
		 "which ljreport prints or draws. Without a process it lists them and asks for "
		 "one.",
	.ending = "SIGUSR1 writes the profile so far; with --rotate it begins new files.\n"
		  "\n"
		  "Exit codes: 0 profile written, 1 usage, 2 not permitted or already traced, 3 no "
		  "LuaJIT in any process, 4 output failed, 5 no such process, or all ended before "
		  "the first sample, or the wait for one was interrupted, 6 other failure of the "
		  "system, 7 the command ended without a sample.",
	.operand = OPTIONS_PROCESSES_OR_COMMAND,
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
};

/* ---- Combinations ----------------------------------------------------------------------- */

/* The first output that is not a stream; NULL: none. */
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

/* Check the options of files. @return As arguments_parse(). */
static int check_files(const struct daemon_options *recording)
{
	const struct format_writer_ops *whole = first_whole(recording);

	if (recording->format_options.trace_records && whole)
		return arguments_refuse("--trace-samples record goes with sysprof alone, not with",
					whole->name);
	if (recording->keep && recording->rotate_s <= 0)
		return arguments_refuse("--keep goes with --rotate", NULL);
	if (recording->limit_bytes && recording->rotate_s <= 0 && !has_stream(recording))
		return arguments_refuse("--limit-bytes counts written bytes: it needs an output in "
					"the format sysprof, or --rotate, not only",
					whole->name);
	return -1;
}

/* Check which options fit together. @return As arguments_parse(). */
static int check(const struct arguments *arguments)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (arguments->command && (arguments->pids.count || arguments->names.count))
		return arguments_refuse("give either processes or a command, not both", NULL);
	if (arguments->options.wait_s > 0 && (arguments->command || arguments->explain))
		return arguments_refuse(
			"--wait goes with processes, not with a command or --explain", NULL);
	if (arguments->options.debuginfod && arguments->command)
		return arguments_refuse(
			"--debuginfod goes with processes: a command has nothing mapped yet", NULL);
	if (arguments->options.wall && arguments->options.mode == DAEMON_MODE_DEFAULT)
		return arguments_refuse("--wall goes with --mode callgraph or leaf: a waiting "
					"thread has no VM state",
					NULL);
	if (arguments->options.wall && arguments->options.capture == DAEMON_CAPTURE_KERNEL)
		return arguments_refuse("--capture=kernel goes without --wall: the kernel copies "
					"only running threads",
					NULL);
	if (arguments->options.debuginfod && (!servers || !*servers))
		return arguments_refuse("--debuginfod needs servers in DEBUGINFOD_URLS", NULL);
	return check_files(&arguments->options);
}

/* ---- Processes or a command ------------------------------------------------------------- */

/* Whether the words after the options are a command. Without "--" before them, a running LuaJIT
 * process comes first, and one word, with nothing but our options after it, never starts a program:
 * who means a process that is not there must not start another one. */
static bool is_command(char **words, int count)
{
	char **copy;
	int first;
	bool are_processes;

	if (operands_is_pids(words[0]))
		return false;
	if (strchr(words[0], '/'))
		return true;
	copy = calloc((size_t)count + 2, sizeof(*copy));
	if (!copy)
		return false;
	memcpy(copy + 1, words, (size_t)count * sizeof(*copy));
	copy[0] = copy[1]; /* skipped */
	/* Its arguments may be our options: "nginx -d 5". */
	are_processes = options_fit(&options, count + 1, copy, &first) &&
			(first == count || operands_are_processes(copy + first, count + 1 - first));
	free(copy);
	return !are_processes;
}

/* @param first Index of the first word after the options. @return As arguments_parse(). */
static int take_words(int argc, char **argv, int first, struct arguments *arguments)
{
	int ret, more;

	if (first == argc)
		return -1;
	if (strcmp(argv[first - 1], "--") == 0 || is_command(argv + first, argc - first)) {
		arguments->command = argv + first;
		return -1;
	}
	/* Options may also follow. The word before takes the place of the program's name. */
	argc -= first - 1;
	argv += first - 1;
	ret = options_parse_more(&options, argc, argv, arguments, &more);
	if (ret >= 0)
		return ret;
	return operands_take(PROGRAM, argv + more, argc - more, &arguments->pids,
			     &arguments->names);
}

/* Ask for a process if none is given. @return As arguments_parse(). */
static int choose_processes(struct arguments *arguments)
{
	const struct daemon_options *recording = &arguments->options;

	if (arguments->command)
		return -1;
	if (!arguments->pids.count && !arguments->names.count)
		return choice_ask(PROGRAM, &arguments->pids);
	if (arguments->explain)
		return operands_resolve(PROGRAM, &arguments->names, &arguments->pids);
	/* Others may come later. */
	if (recording->children || recording->wait_s > 0)
		return -1;
	return operands_check(PROGRAM, &arguments->names, "ljrecord -- COMMAND runs a command");
}

int arguments_parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret < 0)
		ret = take_words(argc, argv, first, ret_arguments);
	if (ret < 0)
		ret = outputs_choose_formats(ret_arguments);
	if (ret < 0)
		ret = check(ret_arguments);
	if (ret < 0)
		ret = choose_processes(ret_arguments);
	if (ret >= 0)
		return ret;
	ret_arguments->options.pids = ret_arguments->pids.pids;
	ret_arguments->options.pid_count = ret_arguments->pids.count;
	if (!ret_arguments->explain) {
		ret_arguments->options.names = ret_arguments->names.patterns;
		ret_arguments->options.name_count = ret_arguments->names.count;
	}
	outputs_name_own(ret_arguments);
	return -1;
}

void arguments_deinit(struct arguments *arguments)
{
	free(arguments->pids.pids);
	options_names_deinit(&arguments->names);
}
