/* SPDX-License-Identifier: MIT */
/* ljrecord: how is a running LuaJIT process profiled? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/signals.h"
#include "cli/record/command.h"
#include "cli/record/hottest.h"
#include "cli/record/outputs.h"
#include "cli/record/record_arguments.h"
#include "cli/record/summary.h"
#include "daemon/dump.h"

enum { RATE_DEFAULT = 99 };

static int prepare_images(struct arguments *arguments)
{
	const char *folder = arguments->options.save_images;

	arguments->images_created = folder && mkdir(folder, 0700) == 0;
	if (!folder || arguments->images_created || errno == EEXIST)
		return 0;
	fprintf(stderr, "ljrecord: cannot create %s: %s\n", folder, strerror(errno));
	return -1;
}

/* Open the file before the recording, so that a wrong path does not waste one. @return -1 to
 * continue, else the exit code. */
static int prepare_stats(struct arguments *arguments)
{
	const char *path = arguments->stats;

	if (!path)
		return -1;
	arguments->stats_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	arguments->stats_created = arguments->stats_fd >= 0;
	if (arguments->stats_fd < 0 && errno == EEXIST)
		arguments->stats_fd = open(path, O_WRONLY | O_CLOEXEC);
	if (arguments->stats_fd < 0) {
		fprintf(stderr, "ljrecord: cannot write %s: %s\n", path, strerror(errno));
		return EXIT_OUTPUT;
	}
	if (!outputs_lead_to(arguments, arguments->stats_fd))
		return -1;
	if (arguments->stats_created)
		unlink(path);
	return arguments_refuse("--output and --stats name the same file:", path);
}

/* @return 0, or -1 with a message printed. */
static int finish_stats(const struct arguments *arguments, const struct daemon_stats *stats,
			bool recorded)
{
	if (!arguments->stats)
		return 0;
	if (!recorded) {
		if (arguments->stats_created)
			unlink(arguments->stats);
		return 0;
	}
	if (summary_write_json(arguments->stats_fd, &arguments->options, stats) == 0)
		return 0;
	fprintf(stderr, "ljrecord: cannot write %s: %s\n", arguments->stats, strerror(errno));
	return -1;
}

static void print_notice(void *context, const char *text)
{
	(void)context;
	summary_clear_progress();
	fprintf(stderr, "ljrecord: %s\n", text);
}

static int finish(const struct arguments *arguments, enum daemon_end end,
		  const struct daemon_stats *stats, const char *text)
{
	int code = recording_exit_code(end);
	bool quiet = arguments->quiet;
	bool recorded = code == EXIT_PROFILE || code == EXIT_EMPTY || stats->samples > 0;

	summary_clear_progress();
	/* It is normal that a command ends. */
	if (*text && (code != EXIT_PROFILE || !(quiet || arguments->command)))
		fprintf(stderr, "ljrecord: %s\n", text);
	if (!quiet && recorded && code != EXIT_EMPTY)
		summary_print(stderr, &arguments->options, stats);
	if (finish_stats(arguments, stats, recorded) != 0)
		return EXIT_OUTPUT;
	if (code == EXIT_PROFILE && arguments->own_output[0] && !quiet && stats->samples &&
	    arguments->options.rotate_s <= 0)
		hottest_print(stderr, arguments->own_output);
	return code;
}

/* @return The first exit code that is not success. */
static int explain(const struct arguments *arguments)
{
	const struct daemon_options *options = &arguments->options;
	int code = EXIT_PROFILE;

	if (options->pid_count == 0 || arguments->command)
		return arguments_refuse("--explain takes processes, not a command", NULL);
	for (size_t i = 0; i < options->pid_count; i++) {
		char text[512];
		enum daemon_end end = daemon_explain(options->pids[i], stdout, text, sizeof(text));

		if (fflush(stdout))
			return EXIT_OUTPUT;
		if (recording_exit_code(end) == EXIT_PROFILE)
			continue;
		fprintf(stderr, "ljrecord: %s\n", text);
		code = code == EXIT_PROFILE ? recording_exit_code(end) : code;
	}
	return code;
}

/* Block it for the whole life of the process: after the recording it is too late, and must not kill
 * us. */
static void block_snapshot_signal(void)
{
	sigset_t wanted;

	/* Our parent may ignore it, and then it would not be delivered. */
	signal(SIGUSR1, SIG_DFL);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
}

static int record(struct arguments *arguments)
{
	static struct daemon_stats stats;
	struct command command = { .go_fd = -1, .failed_fd = -1 };
	char text[PATH_MAX + 512]; /* it may name an output */
	enum daemon_end end;
	int ret;

	ret = outputs_check(arguments);
	if (ret >= 0)
		return ret;
	if (prepare_images(arguments) != 0)
		return EXIT_OUTPUT;
	ret = prepare_stats(arguments);
	if (ret >= 0)
		return ret;
	if (arguments->command) {
		if (command_start(arguments->command, &command) != 0) {
			finish_stats(arguments, &stats, false);
			return EXIT_SYSTEM;
		}
		arguments->options.pids = &command.pid;
		arguments->options.pid_count = 1;
		arguments->options.await_vm = true;
		arguments->options.go_fd = command.go_fd;
		arguments->options.failed_fd = command.failed_fd;
	}
	/* After the fork: the command inherits the original signals and limits. */
	signals_catch();
	block_snapshot_signal();
	signals_raise_descriptor_limit();
	if (!arguments->quiet && isatty(STDERR_FILENO))
		arguments->options.progress = summary_progress;
	end = daemon_record(&arguments->options, &stats, text, sizeof(text));
	/* Without samples the command may never have run; report that instead. */
	if (arguments->command && stats.samples == 0 &&
	    !command_finish(&command, &stop_requested)) {
		finish_stats(arguments, &stats, false);
		return EXIT_USAGE;
	}
	ret = finish(arguments, end, &stats, text);
	if (arguments->command && stats.samples > 0 && ret == EXIT_PROFILE)
		command_finish(&command, &stop_requested);
	daemon_stats_deinit(&stats);
	return ret;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .options = { .mode = DAEMON_MODE_CALLGRAPH,
						    .capture = DAEMON_CAPTURE_AUTO,
						    .rate_hz = RATE_DEFAULT,
						    .go_fd = -1,
						    .failed_fd = -1,
						    .snapshot_signal = SIGUSR1,
						    .notice = print_notice,
						    .stop = &stop_requested } };
	int ret = arguments_parse(argc, argv, &arguments);

	if (ret < 0)
		ret = arguments.explain ? explain(&arguments) : record(&arguments);
	/* Fails harmlessly if there are images. */
	if (arguments.images_created)
		rmdir(arguments.options.save_images);
	arguments_deinit(&arguments);
	return ret;
}
