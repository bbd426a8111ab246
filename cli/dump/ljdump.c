/* SPDX-License-Identifier: MIT */
/* ljdump: what do running LuaJIT processes do now, and what is their state? */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/recording.h"
#include "cli/dump/dump.h"
#include "cli/processes/choice.h"
#include "cli/processes/operands.h"
#include "luastate/variables.h"

#define PROGRAM "ljdump"

enum {
	/* A longer freeze is only a mistake. */
	MAX_PAUSE_S_MAX = 60,
	/* A message may name a core file. */
	TEXT_MAX = PATH_MAX + 512,
};

struct arguments {
	struct options_pids pids;
	struct options_names names;
	bool traces, json;
	const char *stats, *core, *sysroot;
	bool all_threads, locals;
	struct luastate_values_options values;
	bool coroutines;
	uint64_t max_pause_ns; /* 0: not given */
};

/* ---- Options ---------------------------------------------------------------------------- */

static bool take_depth(struct arguments *arguments, const char *text)
{
	long depth;

	if (!options_number(text, 0, LUASTATE_VALUES_DEPTH_MAX, &depth))
		return false;
	arguments->locals = true;
	arguments->values.depth = (unsigned)depth;
	return true;
}

static bool take_max_pause(struct arguments *arguments, const char *text)
{
	double seconds;

	if (!options_time(text, 1e-3, 1e-3, MAX_PAUSE_S_MAX, &seconds))
		return false;
	arguments->max_pause_ns = (uint64_t)(seconds * 1e9);
	return true;
}

static const struct options_entry entries[] = {
	{ "pid", 'p', OPTIONS_PIDS, "PID[,PID]...", "show these processes", .section = "Processes",
	  .excludes = "core sysroot", .is_repeated = true, OPTIONS_INTO(pids),
	  .refused = "not a process id" },
	{ "name", 0, OPTIONS_NAME, "PATTERN",
	  "show LuaJIT processes whose name or program matches PATTERN, an extended regular "
	  "expression as for pgrep",
	  .excludes = "core sysroot", .is_repeated = true, OPTIONS_INTO(names),
	  .refused = "not an extended regular expression" },
	{ "core", 0, OPTIONS_FILE, "FILE", "read a core file, of a crash or of gcore, instead",
	  OPTIONS_INTO(core) },
	{ "sysroot", 0, OPTIONS_FOLDER, "DIR",
	  "with --core, look up its programs and libraries in DIR", OPTIONS_INTO(sysroot) },

	{ "all-threads", 'a', .help = "show threads too that run no Lua", .section = "Stacks",
	  .excludes = "coroutines", OPTIONS_INTO(all_threads) },
	{ "coroutines", 'c',
	  .help = "show all coroutines of each VM instead, fibers too, with their stacks; those "
		  "that wait at the same place are shown once, with --json or --locals each",
	  OPTIONS_INTO(coroutines) },
	{ "locals", 'l',
	  .help = "show the variables of each Lua function: parameters, locals, varargs and "
		  "upvalues with their values, in one consistent snapshot",
	  OPTIONS_INTO(locals) },
	{ "depth", 0, OPTIONS_NUMBER, "N",
	  "show variables, with tables in tables to this depth, 0 to 16 (default 1)",
	  .take = take_depth, .refused = "not a depth from 0 to 16" },
	{ "max-pause", 0, OPTIONS_TIME, "TIME",
	  "freeze the process for at most TIME, 1ms to 1m (default 50ms; a number alone counts "
	  "milliseconds), while memory is copied; this happens with --locals, with --coroutines "
	  "and if several threads run Lua",
	  .excludes = "core", .take = take_max_pause,
	  .refused = "not a time from 1ms to 1m; a number alone counts milliseconds" },

	{ "traces", 't',
	  .help = "show JIT reports instead: live traces, functions that are not "
		  "compiled, aborts, and the machine code in use, for each VM; nothing is stopped",
	  .section = "Compiled code", .excludes = "all-threads coroutines locals depth max-pause",
	  OPTIONS_INTO(traces) },
	{ "stats", 0, OPTIONS_FILE, "FILE",
	  "with --traces, show the samples of each trace; FILE is what ljrecord --stats has "
	  "written",
	  OPTIONS_INTO(stats) },

	{ "json", .help = "print JSON", .section = "Other", OPTIONS_INTO(json) },

	{ "profile", .old_of = "stats" },
};

static const char *const usage[] = {
	"[OPTION]... [PID|NAME]...",
	"[OPTION]... --coroutines [PID|NAME]...",
	"[OPTION]... --traces [PID|NAME]...",
	"[OPTION]... --core FILE",
	NULL,
};

static const struct options options = {
	.program = PROGRAM,
	.usage = usage,
	.about = "Show what LuaJIT processes are doing: the stack of each thread that runs Lua, "
		 "with native, Lua and compiled frames. A running thread is stopped for some 50 "
		 "us; a waiting thread is read without a stop. Without a process it lists them and "
		 "asks for one.",
	.operand = OPTIONS_PROCESSES,
	.ending = "Exit codes: 0 done, 1 usage, 2 not permitted, 3 no LuaJIT in a process, 4 "
		  "output failed, 5 no such process or core file, 6 other failure of the system, "
		  "or an invalid profile or core file.",
	.entries = entries,
	.count = sizeof(entries) / sizeof(entries[0]),
};

/* @return -1 to continue, else the exit code. */
static int parse(int argc, char **argv, struct arguments *ret_arguments)
{
	int first, ret = options_parse(&options, argc, argv, ret_arguments, &first);

	if (ret >= 0)
		return ret;
	if (first < argc && ret_arguments->core)
		return options_refuse(PROGRAM, "--core takes no process, such as", argv[first]);
	ret = operands_take(PROGRAM, argv + first, argc - first, &ret_arguments->pids,
			    &ret_arguments->names);
	if (ret >= 0)
		return ret;
	if (ret_arguments->stats && !ret_arguments->traces)
		return options_refuse(PROGRAM, "--stats goes with --traces", NULL);
	if (ret_arguments->core)
		return -1;
	if (ret_arguments->pids.count || ret_arguments->names.count)
		return operands_resolve(PROGRAM, &ret_arguments->names, &ret_arguments->pids);
	return choice_ask(PROGRAM, &ret_arguments->pids);
}

/* ---- Printing --------------------------------------------------------------------------- */

static void print_totals(struct dump_totals totals)
{
	printf("\n%" PRIu64 " samples in compiled code, %" PRIu64 " of traces that no longer exist",
	       totals.all, totals.unknown);
	if (totals.shared)
		printf(", %" PRIu64 " of traces that exist several times", totals.shared);
	putchar('\n');
}

static void print_traces(const struct daemon_dump *dumps, size_t count,
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

static void print_stacks(const struct daemon_stacks *stacks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			putchar('\n');
		dump_print_stacks(stdout, &stacks[i]);
	}
}

/* @return Whether everything was written: @p good, and the rest of the buffer. */
static bool finish_output(bool good)
{
	good &= fflush(stdout) == 0 && !ferror(stdout);
	/* The reader of the pipe has closed it, which is normal. */
	if (!good && errno != EPIPE)
		fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errno ? errno : EIO));
	return good;
}

/* ---- Dumps ------------------------------------------------------------------------------ */

/* Keep the first exit code that is not success. @return Whether there is something to show. */
static bool take_end(enum daemon_end end, const char *text, int *code)
{
	if (end == DAEMON_END_STOPPED)
		return true;
	fprintf(stderr, PROGRAM ": %s\n", text);
	*code = *code == EXIT_SUCCESS ? recording_exit_code(end) : *code;
	return false;
}

/* Number of processes; 1 for a core file. */
static size_t count_of(const struct arguments *arguments)
{
	return arguments->core ? 1 : arguments->pids.count;
}

static void *make_list(const struct arguments *arguments, size_t size)
{
	void *list = calloc(count_of(arguments), size);

	if (!list)
		fputs(PROGRAM ": out of memory\n", stderr);
	return list;
}

static enum daemon_end read_traces(const struct arguments *arguments, size_t index,
				   struct daemon_dump *ret_dump, char *ret_text, size_t len)
{
	if (arguments->core)
		return daemon_dump_core_traces(arguments->core, arguments->sysroot, ret_dump,
					       ret_text, len);
	return daemon_dump_traces(arguments->pids.pids[index], ret_dump, ret_text, len);
}

static int dump_traces(const struct arguments *arguments, struct dump_profile *profile)
{
	struct daemon_dump *dumps = make_list(arguments, sizeof(*dumps));
	int code = EXIT_SUCCESS;
	size_t count = 0;
	bool good = true;

	if (!dumps)
		return EXIT_SYSTEM;
	for (size_t i = 0; i < count_of(arguments); i++) {
		char text[TEXT_MAX];

		count += take_end(read_traces(arguments, i, &dumps[count], text, sizeof(text)),
				  text, &code);
	}
	if (profile)
		dump_profile_match(profile, dumps, count);
	errno = 0;
	if (arguments->json)
		good = dump_print_json(stdout, dumps, count, profile) == 0;
	else
		print_traces(dumps, count, profile);
	for (size_t i = 0; i < count; i++)
		daemon_dump_deinit(&dumps[i]);
	free(dumps);
	return finish_output(good) ? code : EXIT_OUTPUT;
}

/* @return NULL if variables are not requested. */
static const struct luastate_values_options *values_of(const struct arguments *arguments)
{
	return arguments->locals ? &arguments->values : NULL;
}

static enum daemon_end read_stacks(const struct arguments *arguments, size_t index,
				   struct daemon_stacks *ret_stacks, char *ret_text, size_t len)
{
	const struct daemon_stacks_options what = {
		.all_threads = arguments->all_threads,
		.values = values_of(arguments),
		.max_pause_ns = arguments->max_pause_ns,
	};

	if (arguments->core)
		return daemon_dump_core_stacks(arguments->core, arguments->sysroot, &what,
					       ret_stacks, ret_text, len);
	return daemon_dump_stacks(arguments->pids.pids[index], &what, ret_stacks, ret_text, len);
}

static int dump_stacks(const struct arguments *arguments)
{
	struct daemon_stacks *stacks = make_list(arguments, sizeof(*stacks));
	int code = EXIT_SUCCESS;
	size_t count = 0;
	bool good = true;

	if (!stacks)
		return EXIT_SYSTEM;
	for (size_t i = 0; i < count_of(arguments); i++) {
		char text[TEXT_MAX];

		count += take_end(read_stacks(arguments, i, &stacks[count], text, sizeof(text)),
				  text, &code);
	}
	errno = 0;
	if (arguments->json)
		good = dump_print_stacks_json(stdout, stacks, count) == 0;
	else
		print_stacks(stacks, count);
	for (size_t i = 0; i < count; i++)
		daemon_stacks_deinit(&stacks[i]);
	free(stacks);
	return finish_output(good) ? code : EXIT_OUTPUT;
}

static enum daemon_end read_coroutines(const struct arguments *arguments, size_t index,
				       struct daemon_coroutines *ret_coroutines, char *ret_text,
				       size_t len)
{
	const struct daemon_coroutine_options how = { .max_pause_ns = arguments->max_pause_ns,
						      .values = values_of(arguments) };

	if (arguments->core)
		return daemon_dump_core_coroutines(arguments->core, arguments->sysroot, how.values,
						   ret_coroutines, ret_text, len);
	return daemon_dump_coroutines(arguments->pids.pids[index], &how, ret_coroutines, ret_text,
				      len);
}

static int dump_coroutines(const struct arguments *arguments)
{
	struct daemon_coroutines *coroutines = make_list(arguments, sizeof(*coroutines));
	int code = EXIT_SUCCESS;
	size_t count = 0;
	bool good = true;

	if (!coroutines)
		return EXIT_SYSTEM;
	for (size_t i = 0; i < count_of(arguments); i++) {
		char text[TEXT_MAX];

		count += take_end(
			read_coroutines(arguments, i, &coroutines[count], text, sizeof(text)), text,
			&code);
	}
	errno = 0;
	if (arguments->json)
		good = dump_print_coroutines_json(stdout, coroutines, count) == 0;
	for (size_t i = 0; i < count; i++) {
		if (!arguments->json && i)
			putchar('\n');
		if (!arguments->json)
			dump_print_coroutines(stdout, &coroutines[i]);
		daemon_coroutines_deinit(&coroutines[i]);
	}
	free(coroutines);
	return finish_output(good) ? code : EXIT_OUTPUT;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .values = LUASTATE_VALUES_DEFAULTS };
	struct dump_profile *profile = NULL;
	int ret;

	signal(SIGPIPE, SIG_IGN);
	ret = parse(argc, argv, &arguments);
	if (ret < 0 && arguments.stats && dump_profile_read(arguments.stats, &profile) != 0)
		ret = EXIT_SYSTEM;
	if (ret < 0)
		ret = arguments.traces	     ? dump_traces(&arguments, profile)
		      : arguments.coroutines ? dump_coroutines(&arguments)
					     : dump_stacks(&arguments);
	dump_profile_destroy(profile);
	free(arguments.pids.pids);
	options_names_deinit(&arguments.names);
	return ret;
}
