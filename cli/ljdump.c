/* SPDX-License-Identifier: MIT */
/* ljdump: what a running LuaJIT process is made of. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dump.h"
#include "cli/options.h"

#define PROGRAM "ljdump"

struct arguments {
	pid_t *pids;
	size_t pid_count;
	bool traces, json;
	const char *profile, *core, *sysroot;
};

static void print_help(void)
{
	puts("Usage: ljdump --traces [OPTION]... --pid PID[,PID]... | --core FILE\n"
	     "Show what LuaJIT's compiler has made in running processes. Nothing is stopped.\n"
	     "\n"
	     "  -t, --traces           live traces, functions that are not compiled, aborts, and\n"
	     "                         the machine code in use, for each VM\n"
	     "  -p, --pid PID[,PID]... the processes; may be given several times\n"
	     "      --core FILE        a core file instead, of a program that crashed or that "
	     "gcore\n"
	     "                         saved\n"
	     "      --sysroot DIR      with --core: folder in which the files are that it ran\n"
	     "      --profile FILE     show how often each trace was met: FILE is what\n"
	     "                         ljrecord --stats has written\n"
	     "      --json             print JSON\n"
	     "  -h, --help             this text\n"
	     "  -V, --version          the version\n"
	     "\n"
	     "Exit codes: 0 done, 1 usage, 2 not permitted, 3 no LuaJIT in a process, 4 output\n"
	     "failed, 5 no such process or core file, 6 other failure of the system, or a profile "
	     "or\n"
	     "core file that is none.");
}

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_pids(struct arguments *arguments, const char *text)
{
	return options_add_pids(PROGRAM, text, &arguments->pids, &arguments->pid_count);
}

static bool take_traces(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->traces = true;
	return true;
}

static bool take_profile(struct arguments *arguments, const char *text)
{
	arguments->profile = text;
	return true;
}

static bool take_core(struct arguments *arguments, const char *text)
{
	arguments->core = text;
	return true;
}

static bool take_sysroot(struct arguments *arguments, const char *text)
{
	arguments->sysroot = text;
	return true;
}

static bool take_json(struct arguments *arguments, const char *text)
{
	(void)text;
	arguments->json = true;
	return true;
}

static bool take_help(struct arguments *arguments, const char *text)
{
	(void)arguments, (void)text;
	print_help();
	exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_SUCCESS);
}

static bool take_version(struct arguments *arguments, const char *text)
{
	(void)arguments, (void)text;
	puts(PROGRAM " " LJPROF_VERSION);
	exit(fflush(stdout) ? EXIT_OUTPUT : EXIT_SUCCESS);
}

static const struct choice choices[] = {
	{ "traces", 't', take_traces, .is_alone = true },
	{ "pid", 'p', take_pids, "not a process id:" },
	{ "core", 0, take_core },
	{ "sysroot", 0, take_sysroot },
	{ "profile", 0, take_profile },
	{ "json", 0, take_json, .is_alone = true },
	{ "help", 'h', take_help, .is_alone = true },
	{ "version", 'V', take_version, .is_alone = true },
};

static const struct options options = { .program = PROGRAM,
					.choices = choices,
					.count = sizeof(choices) / sizeof(choices[0]) };

/* @return -1 to go on, else the exit code. */
static int parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret >= 0)
		return ret;
	if (first < argc)
		return options_refuse(PROGRAM, "processes are given with --pid, not as",
				      argv[first]);
	if (!ret_arguments->traces)
		return options_refuse(PROGRAM, "nothing to show: give --traces", NULL);
	if (ret_arguments->pid_count == 0 && !ret_arguments->core)
		return options_refuse(PROGRAM, "no process: give --pid PID, or --core FILE", NULL);
	if (ret_arguments->pid_count && ret_arguments->core)
		return options_refuse(PROGRAM, "either --pid or --core, not both", NULL);
	if (ret_arguments->sysroot && !ret_arguments->core)
		return options_refuse(PROGRAM, "--sysroot is for --core FILE", NULL);
	return -1;
}

/* ---- Dumps ------------------------------------------------------------------------------ */

static void print_totals(struct dump_totals totals)
{
	printf("\n%" PRIu64 " samples in compiled code, %" PRIu64
	       " of traces that are not here now",
	       totals.all, totals.unknown);
	if (totals.shared)
		printf(", %" PRIu64 " of traces that are here more than once", totals.shared);
	putchar('\n');
}

static void print_text(const struct daemon_dump *dumps, size_t count,
		       const struct dump_profile *profile)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			putchar('\n');
		dump_print_text(stdout, &dumps[i], profile);
	}
	if (profile && count)
		print_totals(dump_profile_count(profile));
}

/* @return whether all arrived. */
static bool print_dumps(const struct arguments *arguments, const struct daemon_dump *dumps,
			size_t count, const struct dump_profile *profile)
{
	bool good = true;

	errno = 0;
	if (arguments->json)
		good = dump_print_json(stdout, dumps, count, profile) == 0;
	else
		print_text(dumps, count, profile);
	good &= fflush(stdout) == 0 && !ferror(stdout);
	/* The reader of a pipe has seen enough. */
	if (!good && errno != EPIPE)
		fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errno ? errno : EIO));
	return good;
}

/* The core, or the process with this index. */
static enum daemon_end dump_one(const struct arguments *arguments, size_t index,
				struct daemon_dump *ret_dump, char *ret_text, size_t len)
{
	if (arguments->core)
		return daemon_dump_core_traces(arguments->core, arguments->sysroot, ret_dump,
					       ret_text, len);
	return daemon_dump_traces(arguments->pids[index], ret_dump, ret_text, len);
}

/* @return the first exit code that is none of success. */
static int dump_all(const struct arguments *arguments, struct dump_profile *profile)
{
	size_t wanted = arguments->core ? 1 : arguments->pid_count, count = 0;
	struct daemon_dump *dumps = calloc(wanted, sizeof(*dumps));
	int code = EXIT_SUCCESS;

	if (!dumps) {
		fputs(PROGRAM ": out of memory\n", stderr);
		return EXIT_SYSTEM;
	}
	for (size_t i = 0; i < wanted; i++) {
		char text[512];
		enum daemon_end end = dump_one(arguments, i, &dumps[count], text, sizeof(text));

		if (end == DAEMON_END_STOPPED) {
			count++;
			continue;
		}
		fprintf(stderr, PROGRAM ": %s\n", text);
		code = code == EXIT_SUCCESS ? options_exit_code(end) : code;
	}
	if (profile)
		dump_profile_match(profile, dumps, count);
	if ((count || arguments->json) && !print_dumps(arguments, dumps, count, profile))
		code = EXIT_OUTPUT;
	for (size_t i = 0; i < count; i++)
		daemon_dump_deinit(&dumps[i]);
	free(dumps);
	return code;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct dump_profile *profile = NULL;
	int ret;

	signal(SIGPIPE, SIG_IGN);
	ret = parse(argc, argv, &arguments);
	if (ret < 0 && arguments.profile && dump_profile_read(arguments.profile, &profile) != 0)
		ret = EXIT_SYSTEM;
	if (ret < 0)
		ret = dump_all(&arguments, profile);
	dump_profile_destroy(profile);
	free(arguments.pids);
	return ret;
}
