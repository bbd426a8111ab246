/* SPDX-License-Identifier: MIT */
/* ljreport: how is a profile printed, drawn, converted, or compared with another? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/stdio_setup.h"
#include "cli/report/progress.h"
#include "cli/report/report.h"
#include "format/text.h"

enum {
	/* Lines of a terminal that the table of functions leaves to its heads, its last line and
	 * the shell's prompt. */
	LINES_AROUND = 6,
	TOP_MIN = 10,
};

static int report_read_failure(const char *name, const struct failure *why)
{
	char text[PATH_MAX + 256];

	progress_stop();
	format_describe_failure(why, name, text, sizeof(text));
	if (why->kind != FAILURE_INVALID)
		fprintf(stderr, "ljreport: %s\n", text);
	else if (why->address == 0)
		fprintf(stderr, "ljreport: %s (give a file written by ljrecord)\n", text);
	else
		fprintf(stderr, "ljreport: %s (the profile is incomplete; record it again)\n",
			text);
	return REPORT_INPUT;
}

/** Add a file to the profile. */
static int add_profile(const char *path, struct format_profile *profile)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	FILE *file = standard ? stdin : fopen(path, "rbe");
	struct failure why = { 0 };
	int result = REPORT_DONE;

	if (!file) {
		int errnum = errno;

		progress_stop();
		fprintf(stderr, "ljreport: %s: %s (give a file written by ljrecord)\n", name,
			strerror(errnum));
		return REPORT_INPUT;
	}
	if (format_profile_add(profile, file, &why))
		result = report_read_failure(name, &why);
	if (!standard)
		fclose(file);
	return result;
}

/** Check that these profiles support the request. @return An exit code. */
static int check_profiles(const struct arguments *arguments, const struct format_profile *base,
			  const struct format_profile *profile)
{
	const struct format_profile *both[] = { base, profile };
	const char *names[] = { arguments->base, arguments->inputs[0] };

	if (!base && !arguments->budget)
		return REPORT_DONE;
	for (int i = 0; i < 2; i++) {
		if (!both[i] || format_profile_has_samples(both[i]))
			continue;
		progress_stop();
		fprintf(stderr,
			"ljreport: %s: --diff and rules need sample counts; this profile counts "
			"%s\n",
			names[i],
			format_profile_kind(both[i]) == FORMAT_STREAM_MEMPROF
				? "allocations"
				: format_profile_unit(both[i]));
		return REPORT_INPUT;
	}
	return REPORT_DONE;
}

/** Say so if the requested roots of chains are not in the profile, or not in the report. */
static void tell_roots(const struct arguments *arguments, const struct format_profile *profile)
{
	static const char *const with_roots[] = { "folded", "svg", "html" };
	unsigned roots = arguments->options.roots;
	bool lacks_processes =
		(roots & FORMAT_ROOTS_PROCESS) && !format_profile_has_processes(profile);
	bool lacks_threads = (roots & FORMAT_ROOTS_THREAD) && !format_profile_has_threads(profile);
	bool has_effect = !roots;

	for (size_t i = 0; i < sizeof(with_roots) / sizeof(with_roots[0]); i++)
		has_effect |= strcmp(arguments->report->name, with_roots[i]) == 0;
	if (has_effect && !lacks_processes && !lacks_threads)
		return;
	progress_stop();
	if (!has_effect)
		fprintf(stderr, "ljreport: --roots has no effect on the format %s\n",
			arguments->report->name);
	else
		fprintf(stderr,
			"ljreport: %s: no sample has its %s, so --roots cannot show it (a sysprof "
			"stream has none; pprof has both)\n",
			arguments->inputs[0],
			!lacks_threads	   ? "process"
			: !lacks_processes ? "thread"
					   : "process or thread");
}

/** Say so if the samples have no order, and the report's meaning depends on it. */
static void tell_order(const struct arguments *arguments, enum format_order order,
		       const struct format_profile *base, const struct format_profile *profile)
{
	bool lacks_base = base && !format_profile_has_order(base);

	if (arguments->quiet || order != FORMAT_ORDER_NEEDED ||
	    format_profile_kind(profile) == FORMAT_STREAM_MEMPROF ||
	    (!lacks_base && format_profile_has_order(profile)))
		return;
	progress_stop();
	fprintf(stderr, "ljreport: %s does not tell in which order its samples came: %s\n",
		lacks_base ? arguments->base : arguments->inputs[0],
		arguments->report->order == FORMAT_ORDER_NEEDED
			? "the times of the chart mean nothing"
			: "samples count as independent, so the intervals may be too narrow");
}

static int tell_failure(const struct arguments *arguments, const struct failure *why)
{
	char text[PATH_MAX + 256];

	format_describe_failure(why, arguments->inputs[0], text, sizeof(text));
	progress_stop();
	fprintf(stderr, "ljreport: %s\n", text);
	return REPORT_OUTPUT;
}

static int print_as_is(const struct format_profile *base, const struct format_profile *profile,
		       const struct arguments *arguments, FILE *file)
{
	const struct format_report_ops *report = arguments->report;
	struct failure why = { 0 };

	if (format_report_print(report, base, profile, &arguments->options, file, &why) == 0)
		return REPORT_DONE;
	if (why.kind == FAILURE_NOT_FOUND) {
		progress_stop();
		fprintf(stderr, "ljreport: %s: not a memory profile (use -f top)\n",
			arguments->inputs[0]);
		return REPORT_INPUT;
	}
	return tell_failure(arguments, &why);
}

/** Print a report. If the report needs call chains, convert a memory profile to its locations. */
static int print_report(const struct format_profile *base, const struct format_profile *profile,
			const struct arguments *arguments, FILE *file)
{
	struct format_profile *chains;
	struct failure why = { 0 };
	int result;

	if (format_profile_kind(profile) != FORMAT_STREAM_MEMPROF ||
	    arguments->report->takes_memory)
		return print_as_is(base, profile, arguments, file);
	if (format_profile_of_memory(profile, arguments->options.memory, &chains, &why))
		return tell_failure(arguments, &why);
	result = print_as_is(base, chains, arguments, file);
	format_profile_destroy(chains);
	return result;
}

static int tell_output(const char *name, int errnum, const char *what)
{
	progress_stop();
	/* The reader of the pipe has closed it, which is normal. */
	if (errnum != EPIPE)
		fprintf(stderr, "ljreport: %s: %s (%s)\n", name, strerror(errnum), what);
	return REPORT_OUTPUT;
}

/** The temporary file beside the output. */
static struct {
	char path[PATH_MAX];
	volatile sig_atomic_t is_there;
} aside;

/** The signal has its usual effect when this returns. */
static void on_end(int number)
{
	if (aside.is_there)
		unlink(aside.path);
	raise(number);
}

/** An interrupted command leaves no temporary file behind. */
static void catch_ends(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESETHAND };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

/** Open a temporary file beside the output if that is a regular file or new: only a complete report
 * replaces the output. An output such as a pipe is written directly. @return The descriptor, or
 * -1. */
static int open_output(const char *path)
{
	struct stat status;
	mode_t mask = umask(0);
	bool is_there = lstat(path, &status) == 0;
	char name[PATH_MAX];
	int fd, len;

	umask(mask);
	if (is_there && !S_ISREG(status.st_mode))
		return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (is_there && access(path, W_OK))
		return -1;
	len = snprintf(name, sizeof(name), "%s.XXXXXX.tmp", path);
	fd = len < PATH_MAX ? mkostemps(name, (int)strlen(".tmp"), O_CLOEXEC) : -1;
	/* The folder does not permit another file. */
	if (fd < 0)
		return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	memcpy(aside.path, name, sizeof(name));
	aside.is_there = 1;
	/* Keep the owner and the mode, if we may. */
	if (fchmod(fd, is_there ? status.st_mode & 07777 : 0666 & ~mask) ||
	    (is_there && fchown(fd, status.st_uid, status.st_gid) && errno != EPERM)) {
		close(fd);
		unlink(aside.path);
		return -1;
	}
	return fd;
}

static int write_sink(const struct format_profile *base, const struct format_profile *profile,
		      const struct arguments *arguments, struct format_sink *sink)
{
	const char *path = arguments->output;
	size_t len = strlen(path);
	struct failure why = { 0 };
	FILE *file;
	int result;

	if (!arguments->report->is_packed && len > 3 && strcmp(path + len - 3, ".gz") == 0)
		format_sink_compress(sink);
	file = format_sink_file(sink, &why);
	result = file ? print_report(base, profile, arguments, file)
		      : tell_output(path, ENOMEM, "the report is not complete");
	if (file && format_sink_file_done(sink, file, &why) && result == REPORT_DONE)
		result = tell_output(path, why.errnum, "the report is not complete");
	return result;
}

static int write_file(const struct format_profile *base, const struct format_profile *profile,
		      const struct arguments *arguments)
{
	const char *path = arguments->output;
	int fd = open_output(path), result;
	struct format_sink *sink = NULL;
	struct failure why = { 0 };

	if (fd < 0)
		return tell_output(path, errno, "choose another -o");
	if (format_sink_create(fd, &sink, &why)) {
		close(fd);
		result = tell_output(path, why.errnum ? why.errnum : ENOMEM, "choose another -o");
	} else {
		result = write_sink(base, profile, arguments, sink);
	}
	format_sink_destroy(sink);
	if (aside.is_there && result == REPORT_DONE && rename(aside.path, path))
		result = tell_output(path, errno, "choose another -o");
	if (aside.is_there && result != REPORT_DONE)
		unlink(aside.path);
	aside.is_there = 0;
	return result;
}

/** On a terminal a table shows what fits the screen: the hottest rows. */
static void fit_terminal(struct arguments *arguments)
{
	unsigned lines, columns;

	if (strcmp(arguments->report->name, "top") != 0 ||
	    !stdio_terminal_size(STDOUT_FILENO, &lines, &columns))
		return;
	arguments->options.width = columns;
	if (!arguments->options.top)
		arguments->options.top =
			lines > LINES_AROUND + TOP_MIN ? lines - LINES_AROUND : TOP_MIN;
}

static int write_report(const struct format_profile *base, const struct format_profile *profile,
			const struct arguments *arguments)
{
	int result;

	struct arguments shown = *arguments;

	progress_write();
	if (arguments->output)
		return write_file(base, profile, arguments);
	if (isatty(STDOUT_FILENO))
		progress_stop();
	fit_terminal(&shown);
	errno = 0;
	result = print_report(base, profile, &shown, stdout);
	if ((fflush(stdout) || ferror(stdout)) && result == REPORT_DONE)
		result = tell_output("standard output", errno ? errno : EIO,
				     "the report is not complete");
	return result;
}

/** Read files into one profile, which the caller owns even after a failure. @return An exit
 * code. */
static int read_all(char *const *paths, size_t count, enum format_order order,
		    struct format_profile **ret_profile)
{
	struct failure why;
	int result = REPORT_DONE;

	*ret_profile = format_profile_create(&why);
	if (!*ret_profile)
		return report_read_failure(paths[0], &why);
	format_profile_keep_order(*ret_profile, order);
	format_profile_set_progress(*ret_profile, progress_add, NULL);
	for (size_t i = 0; i < count && result == REPORT_DONE; i++)
		result = add_profile(paths[i], *ret_profile);
	return result;
}

/** Append, because other steps of a job may have written to the page. */
static int write_summary(const struct format_profile *base, const struct format_profile *profile,
			 const struct arguments *arguments)
{
	struct arguments page = *arguments;
	FILE *file = fopen(arguments->summary, "ae");
	int result, errnum = errno;

	if (!file)
		return tell_output(arguments->summary, errnum, "choose another --summary");
	page.report = format_report_find("markdown");
	/* The page may lack its last line feed. */
	if (fseeko(file, 0, SEEK_END) == 0 && ftello(file) > 0)
		putc('\n', file);
	if (arguments->budget) {
		format_budget_print_markdown(arguments->budget, file);
		putc('\n', file);
	}
	errno = 0;
	result = print_report(base, profile, &page, file);
	errnum = ferror(file) ? (errno ? errno : EIO) : 0;
	if (fclose(file) && !errnum)
		errnum = errno;
	if (errnum && result == REPORT_DONE)
		return tell_output(arguments->summary, errnum, "the page is not complete");
	return result;
}

/** Judge the rules even if the reader of the report closes the pipe early. */
static int print_and_judge(const struct arguments *arguments, const struct format_profile *base,
			   const struct format_profile *profile)
{
	int printed = write_report(base, profile, arguments), judged = REPORT_DONE, written;

	if (arguments->budget)
		judged = report_judge(arguments, base, profile);
	if (arguments->summary && (judged == REPORT_DONE || judged == REPORT_BROKEN)) {
		written = write_summary(base, profile, arguments);
		printed = printed == REPORT_DONE ? written : printed;
	}
	return judged == REPORT_DONE ? printed : judged;
}

/** @return Whether the size of an input is known; a missing file counts as empty. */
static bool add_size(const char *path, uint64_t *bytes)
{
	struct stat status;

	if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &status) : stat(path, &status)) != 0)
		return true;
	*bytes += S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
	return S_ISREG(status.st_mode);
}

static void start_progress(const struct arguments *arguments)
{
	uint64_t bytes = 0;
	bool known = !arguments->base || add_size(arguments->base, &bytes);

	if (arguments->quiet)
		return;
	for (size_t i = 0; i < arguments->input_count; i++)
		known &= add_size(arguments->inputs[i], &bytes);
	progress_start(known ? bytes : 0);
}

static int run(struct arguments *arguments)
{
	struct format_profile *base = NULL, *profile = NULL;
	char *base_path = (char *)(uintptr_t)arguments->base;
	/* The certainty of a comparison depends on the order of the samples. */
	enum format_order order = arguments->base || arguments->budget ? FORMAT_ORDER_NEEDED
								       : arguments->report->order;
	int result;

	start_progress(arguments);
	result = arguments->base ? read_all(&base_path, 1, order, &base) : REPORT_DONE;
	if (result == REPORT_DONE)
		result = read_all(arguments->inputs, arguments->input_count, order, &profile);
	if (result == REPORT_DONE)
		result = check_profiles(arguments, base, profile);
	if (result == REPORT_DONE) {
		tell_roots(arguments, profile);
		tell_order(arguments, order, base, profile);
	}
	if (result == REPORT_DONE)
		result = print_and_judge(arguments, base, profile);
	progress_stop();
	format_profile_destroy(base);
	format_profile_destroy(profile);
	return result;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int result;

	signal(SIGPIPE, SIG_IGN);
	catch_ends();
	result = report_arguments_parse(argc, argv, &arguments);
	if (result == REPORT_DONE)
		result = run(&arguments);
	report_arguments_deinit(&arguments);
	return result;
}
