/* SPDX-License-Identifier: MIT */
/* ljrecord: profile a running LuaJIT process. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/summary.h"
#include "daemon/daemon.h"

/* Exit codes are an interface: ljrecord(1). */
enum {
	EXIT_PROFILE = 0,
	EXIT_USAGE = 1,
	EXIT_DENIED = 2,
	EXIT_NO_LUAJIT = 3,
	EXIT_OUTPUT = 4,
	EXIT_ENDED = 5,
	EXIT_SYSTEM = 6,
};

enum {
	RATE_DEFAULT = 99,
	RATE_MAX = 10000,
};

struct arguments {
	struct daemon_options options;
	const char *stats;
	bool quiet;
	char **command; /* NULL with --pid */
	const char *pid_text;
	char **argv;
};

static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
	(void)number;
	stop_requested = 1;
}

static void print_help(void)
{
	puts("Usage: ljrecord [OPTION]... --pid PID\n"
	     "       ljrecord [OPTION]... -- COMMAND [ARGUMENT]...\n"
	     "Profile a running LuaJIT process from outside and write the profile to a file.\n"
	     "\n"
	     "  -p, --pid PID          the process to record\n"
	     "  -o, --output FILE      write the profile to FILE (default ljprof.bin, - for "
	     "stdout)\n"
	     "  -d, --duration SECONDS stop after so long (default: until interrupted, or until\n"
	     "                         the process ends)\n"
	     "  -F, --frequency HZ     samples per second and thread, 1 to 10000 (default 99)\n"
	     "  -m, --mode MODE        callgraph (default): whole chains; leaf: the leaf frames;\n"
	     "                         default: counters of VM states only\n"
	     "  -f, --format FORMAT    format of the profile:");
	for (size_t i = 0; format_writers[i]; i++)
		printf("                           %-10s %s%s\n", format_writers[i]->name,
		       format_writers[i]->description, i == 0 ? " (default)" : "");
	puts("      --lines WHICH      line of a Lua frame: current (default), or function for\n"
	     "                         the line where the function begins\n"
	     "      --stats FILE       write the summary's numbers to FILE as JSON\n"
	     "      --save-images DIR  keep what each stop read, one file a stop, in DIR\n"
	     "  -q, --quiet            no progress line and no summary\n"
	     "  -h, --help             this text\n"
	     "  -V, --version          the version\n"
	     "\n"
	     "Exit codes: 0 profile written, 1 usage, 2 not permitted or already traced,\n"
	     "3 no LuaJIT in the process, 4 output failed, 5 the target ended before the first\n"
	     "sample, 6 other failure of the system.");
}

static int usage(const char *text, const char *argument)
{
	fprintf(stderr, "ljrecord: %s%s%s: try ljrecord --help\n", text, argument ? " " : "",
		argument ? argument : "");
	return EXIT_USAGE;
}

/* ---- Arguments -------------------------------------------------------------------------- */

static bool parse_number(const char *text, long min, long max, long *ret_value)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return false;
	*ret_value = value;
	return true;
}

static bool parse_seconds(const char *text, double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0) || value > 1e9)
		return false;
	*ret_value = value;
	return true;
}

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

enum { OPTION_LINES = 256, OPTION_STATS, OPTION_IMAGES };

/* @return -1 to go on, else the exit code. */
static int take_option(struct arguments *arguments, int option)
{
	struct daemon_options *options = &arguments->options;
	long number;

	switch (option) {
	case 'p':
		arguments->pid_text = optarg;
		if (!parse_number(optarg, 1, INT32_MAX, &number))
			return usage("not a process id:", optarg);
		options->pid = (pid_t)number;
		break;
	case 'o':
		options->output = optarg;
		break;
	case 'd':
		if (!parse_seconds(optarg, &options->duration_s))
			return usage("not a number of seconds:", optarg);
		break;
	case 'F':
		if (!parse_number(optarg, 1, RATE_MAX, &number))
			return usage("not a frequency from 1 to 10000 Hz:", optarg);
		options->rate_hz = (unsigned)number;
		break;
	case 'm':
		if (!parse_mode(optarg, &options->mode))
			return usage("unknown mode:", optarg);
		break;
	case 'f':
		options->format = format_writer_find(optarg);
		if (!options->format)
			return usage("unknown format:", optarg);
		break;
	case OPTION_LINES:
		if (!parse_lines(optarg, &options->format_options.first_lines))
			return usage("not a choice of lines (current or function):", optarg);
		break;
	case OPTION_STATS:
		arguments->stats = optarg;
		break;
	case OPTION_IMAGES:
		options->save_images = optarg;
		break;
	case 'q':
		arguments->quiet = true;
		break;
	case 'h':
		print_help();
		exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_PROFILE);
	case 'V':
		puts("ljrecord " LJPROF_VERSION);
		exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_PROFILE);
	case ':':
		return usage("an argument is missing behind", arguments->argv[optind - 1]);
	default:
		return usage("unknown option", arguments->argv[optind - 1]);
	}
	return -1;
}

static int parse_arguments(int argc, char **argv, struct arguments *ret_arguments)
{
	static const struct option longs[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "duration", required_argument, NULL, 'd' },
		{ "frequency", required_argument, NULL, 'F' },
		{ "mode", required_argument, NULL, 'm' },
		{ "format", required_argument, NULL, 'f' },
		{ "lines", required_argument, NULL, OPTION_LINES },
		{ "stats", required_argument, NULL, OPTION_STATS },
		{ "save-images", required_argument, NULL, OPTION_IMAGES },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, ret;

	opterr = 0; /* one line of ours instead of two */
	ret_arguments->argv = argv;
	while ((option = getopt_long(argc, argv, "+:p:o:d:F:m:f:qhV", longs, NULL)) != -1) {
		ret = take_option(ret_arguments, option);
		if (ret >= 0)
			return ret;
	}
	if (optind < argc)
		ret_arguments->command = argv + optind;
	if (!ret_arguments->command && !ret_arguments->pid_text)
		return usage("nothing to record: give --pid PID or a command", NULL);
	if (ret_arguments->command && ret_arguments->pid_text)
		return usage("give either --pid or a command, not both", NULL);
	return -1;
}

/* ---- Running ---------------------------------------------------------------------------- */

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* One descriptor a thread of the target. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int prepare_images(const char *folder)
{
	if (!folder || mkdir(folder, 0755) == 0 || errno == EEXIST)
		return 0;
	fprintf(stderr, "ljrecord: cannot create %s: %s\n", folder, strerror(errno));
	return -1;
}

static int exit_code(enum daemon_end end)
{
	switch (end) {
	case DAEMON_END_STOPPED:
	case DAEMON_END_TARGET:
		return EXIT_PROFILE;
	case DAEMON_END_DENIED:
		return EXIT_DENIED;
	case DAEMON_END_NO_VM:
		return EXIT_NO_LUAJIT;
	case DAEMON_END_OUTPUT:
		return EXIT_OUTPUT;
	case DAEMON_END_EARLY:
		return EXIT_ENDED;
	case DAEMON_END_SYSTEM:
		break;
	}
	return EXIT_SYSTEM;
}

static int finish(const struct arguments *arguments, enum daemon_end end,
		  const struct daemon_stats *stats, const char *text)
{
	int code = exit_code(end);
	bool quiet = arguments->quiet;

	summary_clear_progress();
	/* That a command ends is what it was started for. */
	if (*text && (code != EXIT_PROFILE || !(quiet || arguments->command)))
		fprintf(stderr, "ljrecord: %s\n", text);
	if (!quiet && (code == EXIT_PROFILE || stats->samples > 0))
		summary_print(stderr, &arguments->options, stats);
	if (arguments->stats && (code == EXIT_PROFILE || stats->samples > 0) &&
	    summary_write_json(arguments->stats, &arguments->options, stats) != 0) {
		fprintf(stderr, "ljrecord: cannot write %s: %s\n", arguments->stats,
			strerror(errno));
		return EXIT_OUTPUT;
	}
	return code;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .options = { .output = "ljprof.bin",
						    .format = format_writers[0],
						    .mode = DAEMON_MODE_CALLGRAPH,
						    .rate_hz = RATE_DEFAULT,
						    .go_fd = -1,
						    .stop = &stop_requested } };
	static struct daemon_stats stats;
	struct command command = { .go_fd = -1 };
	char text[512];
	enum daemon_end end;
	int ret = parse_arguments(argc, argv, &arguments);

	if (ret >= 0)
		return ret;
	if (prepare_images(arguments.options.save_images) != 0)
		return EXIT_OUTPUT;
	if (arguments.command) {
		if (command_start(arguments.command, &command) != 0)
			return EXIT_SYSTEM;
		arguments.options.pid = command.pid;
		arguments.options.await_vm = true;
		arguments.options.go_fd = command.go_fd;
	}
	/* Behind the fork: the command gets what we were given. */
	catch_signals();
	raise_descriptor_limit();
	if (!arguments.quiet && isatty(STDERR_FILENO))
		arguments.options.progress = summary_progress;
	end = daemon_record(&arguments.options, &stats, text, sizeof(text));
	/* Without a sample the command may never have run: that is what is to be said then. */
	if (arguments.command && stats.samples == 0 && !command_finish(&command, &stop_requested))
		return EXIT_USAGE;
	ret = finish(&arguments, end, &stats, text);
	if (arguments.command && stats.samples > 0 && ret == EXIT_PROFILE)
		command_finish(&command, &stop_requested);
	return ret;
}
