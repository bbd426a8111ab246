/* SPDX-License-Identifier: MIT */
/* ljtop: where do running LuaJIT processes spend their time, while they run? */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "attach/clock.h"
#include "cli/common/signals.h"
#include "cli/processes/choice.h"
#include "cli/processes/process_table.h"
#include "cli/top/terminal/top_terminal.h"
#include "cli/top/top.h"
#include "cli/top/top_picker.h"
#include "cli/top/top_screen.h"

#define PROGRAM "ljtop"

enum {
	RATE_DEFAULT = 199,
	WIDTH_DEFAULT = 120,
	ROWS_DEFAULT = 40,
	/* Each refresh needs as much memory as the last one: less than this is kept for it. */
	KEPT_BYTES = 32 << 20,
};

/* Receive samples until that time, or until the sampling ends. @return 0 or -1. */
static int wait_until(struct daemon_live *session, double end_s, struct failure *why)
{
	for (;;) {
		double left_s = end_s - (double)clock_now_ns() / 1e9;
		struct pollfd poller = { .fd = daemon_live_fd(session), .events = POLLIN };

		if (daemon_live_take(session, why) < 0)
			return -1;
		if (left_s <= 0 || stop_requested || daemon_live_header(session)->ended)
			return 0;
		poll(&poller, 1, left_s > 1 ? 1000 : (int)(left_s * 1000) + 1);
	}
}

/* Wait until the sampling begins: finding a VM may take a while. */
static int wait_for_begin(struct daemon_live *session, struct failure *why)
{
	while (!stop_requested && !daemon_live_header(session)->ended &&
	       !daemon_live_header(session)->elapsed_ns)
		if (wait_until(session, (double)clock_now_ns() / 1e9 + 0.02, why) != 0)
			return -1;
	return 0;
}

/* Print one refresh. @return 0 or the exit code. */
static int print_screen(const struct arguments *arguments, struct daemon_live *session,
			struct failure *why)
{
	int ret;

	errno = 0;
	ret = daemon_live_refresh(session, why);
	if (ret == 0)
		ret = arguments->json ? top_print_json(stdout, arguments, session, why)
				      : top_print_text(stdout, arguments, session, why);
	if (ret != 0) {
		fputs(PROGRAM ": out of memory\n", stderr);
		return EXIT_SYSTEM;
	}
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	/* The reader of the pipe has closed it, which is normal. */
	if (errno != EPIPE)
		fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errno ? errno : EIO));
	return EXIT_OUTPUT;
}

/* Report how the sampling ended. If it ended before the first sample, there was no screen. */
static int tell_end(const struct daemon_live_header *header)
{
	if (header->text[0])
		fprintf(stderr, PROGRAM ": %s\n", header->text);
	return recording_exit_code(header->end);
}

static int print_screens(const struct arguments *arguments, struct daemon_live *session,
			 struct failure *why)
{
	const struct daemon_live_header *header = daemon_live_header(session);
	double next_s;
	int ret = wait_for_begin(session, why);

	next_s = (double)clock_now_ns() / 1e9;
	for (long i = 0; ret == 0 && (!arguments->iterations || i < arguments->iterations); i++) {
		next_s += arguments->delay_s;
		/* After a slow reader, do not print the missed screens all at once. */
		if (next_s < (double)clock_now_ns() / 1e9)
			next_s = (double)clock_now_ns() / 1e9;
		ret = wait_until(session, next_s, why);
		if (ret != 0 || stop_requested || (header->ended && header->samples == 0))
			break;
		ret = print_screen(arguments, session, why);
		if (header->ended)
			break;
	}
	if (ret < 0) {
		fputs(PROGRAM ": out of memory\n", stderr);
		return EXIT_SYSTEM;
	}
	return ret == 0 && header->ended ? tell_end(header) : ret;
}

/* Show the full screen. It does not open if the sampling ends before the first sample. */
static int show_screen(const struct arguments *arguments, struct top_screen *screen,
		       struct daemon_live *session, struct failure *why)
{
	const struct daemon_live_header *header = daemon_live_header(session);
	const struct top_screen_options options = { .delay_ms =
							    (unsigned)(arguments->delay_s * 1000),
						    .takes_mouse = !arguments->no_mouse,
						    .query = &arguments->query,
						    .stop = &stop_requested };
	const char *text = "out of memory";
	int ret = wait_for_begin(session, why);

	if (ret == 0 && !stop_requested && !(header->ended && header->samples == 0))
		ret = top_screen_run(screen, session, &options, &text);
	if (ret != 0) {
		fprintf(stderr, PROGRAM ": %s\n", text);
		return EXIT_SYSTEM;
	}
	return header->ended ? tell_end(header) : EXIT_PROFILE;
}

/* @param screen NULL for plain screens and JSON. */
static int run(const struct arguments *arguments, struct top_screen *screen)
{
	struct daemon_live *session;
	struct failure why;
	char text[256];
	int ret;

	if (daemon_live_start(&arguments->options, &arguments->live, &session, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		fprintf(stderr, PROGRAM ": %s\n", text);
		return EXIT_SYSTEM;
	}
	ret = screen ? show_screen(arguments, screen, session, &why)
		     : print_screens(arguments, session, &why);
	daemon_live_destroy(session);
	return ret;
}

/* Print the LuaJIT processes. @return The exit code. */
static int print_list(const struct arguments *arguments)
{
	struct daemon_list list;
	int ret = choice_list(PROGRAM, &(struct daemon_list_options){ .with_vms = true }, &list),
	    errnum;

	if (ret)
		return ret;
	errno = 0;
	if (arguments->json)
		process_table_print_json(stdout, &list);
	else
		process_table_print(stdout, &list, false, SIZE_MAX);
	errnum = fflush(stdout) || ferror(stdout) ? (errno ? errno : EIO) : 0;
	if (*list.note && !arguments->json)
		fprintf(stderr, PROGRAM ": %s\n", list.note);
	daemon_list_deinit(&list);
	if (errnum && errnum != EPIPE)
		fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errnum));
	return errnum ? EXIT_OUTPUT : EXIT_PROFILE;
}

/* Let the user choose a process if none is given. @return -1 to continue, else the exit code. */
static int choose_processes(struct arguments *arguments)
{
	bool is_plain = arguments->batch || arguments->json;
	struct daemon_list list;
	const char *text = NULL;
	int ret = -1;

	if (!arguments->pids.count && !arguments->names.count) {
		ret = choice_list(PROGRAM, &(struct daemon_list_options){ .with_vms = true },
				  &list);
		if (ret)
			return ret;
		if (is_plain || top_terminal_refuse()) {
			ret = choice_refuse(PROGRAM, &list);
		} else {
			/* Ctrl-C must not leave the terminal as it is then. */
			signals_catch();
			ret = top_picker_run(&list, &arguments->pids, &text);
		}
		daemon_list_deinit(&list);
	}
	if (text)
		fprintf(stderr, PROGRAM ": %s\n", text);
	top_arguments_use_processes(arguments);
	return ret;
}

/* @return -1 to continue, else the exit code, with a message printed. */
static int prepare_screen(const struct arguments *arguments, struct top_screen **ret_screen)
{
	const struct daemon_options *options = &arguments->options;
	/* More processes than the given ones may be sampled. */
	bool is_open = options->name_count || options->children;
	const char *text;

	if (arguments->batch || arguments->json)
		return -1;
	*ret_screen = top_screen_create(options->pids, is_open ? 0 : options->pid_count, &text);
	if (*ret_screen)
		return -1;
	fprintf(stderr, PROGRAM ": %s\n", text);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .options = { .mode = DAEMON_MODE_CALLGRAPH,
						    .capture = DAEMON_CAPTURE_AUTO,
						    .rate_hz = RATE_DEFAULT,
						    .go_fd = -1,
						    .failed_fd = -1,
						    .stop = &stop_requested },
				       .query = { .native = FORMAT_NATIVE_PROGRAM },
				       .delay_s = 1,
				       .width = WIDTH_DEFAULT,
				       .rows = ROWS_DEFAULT };
	struct top_screen *screen = NULL;
	int ret = top_arguments_parse(argc, argv, &arguments);

	if (ret < 0)
		ret = arguments.lists ? print_list(&arguments) : choose_processes(&arguments);
	if (ret < 0)
		ret = prepare_screen(&arguments, &screen);
	if (ret < 0) {
		signals_catch();
		signals_raise_descriptor_limit();
		mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
		mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
		ret = run(&arguments, screen);
	}
	top_screen_destroy(screen);
	top_arguments_deinit(&arguments);
	return ret;
}
