/* SPDX-License-Identifier: MIT */
/* Which formats and files do -o and -f name? */
#include "cli/record/outputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "attach/process.h"
#include "cli/common/options.h"
#include "cli/common/stdio_setup.h"
#include "format/report.h"
#include "format/text.h"

enum {
	/* Most files with the same name and second. */
	NUMBERS_MAX = 1000,
};

bool outputs_add(struct arguments *arguments, const char *path)
{
	if (arguments->options.output_count == DAEMON_OUTPUTS_MAX)
		return false;
	arguments->outputs[arguments->options.output_count++].path = path;
	return true;
}

/* ---- Formats ---------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the path is not a regular file, so that a name with a time would be a different file
 * beside it. */
static bool is_no_file(const char *path)
{
	struct stat status;

	return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

/* Some options need a stream. Otherwise the default is the format that holds most. */
static const struct format_writer_ops *default_format(const struct daemon_options *options)
{
	bool needs_stream = options->format_options.trace_records ||
			    (options->limit_bytes && options->rotate_s <= 0);

	return format_writer_find(needs_stream ? "sysprof" : "pprof");
}

static bool is_gzip(const char *path, size_t len)
{
	return len > 3 && path[len - 4] != '/' && strcmp(path + len - 3, ".gz") == 0;
}

static const char *suffixes_at(size_t index)
{
	return format_writers[index] ? format_writers[index]->suffixes : NULL;
}

/* Choose by the output's name. @return As outputs_choose_formats(). */
static int choose_format(const struct arguments *arguments, struct daemon_output *output)
{
	const char *path = output->path;

	output->format = arguments->format ? arguments->format : format_writer_for(path);
	if (!output->format && format_has_suffix(path) && !is_no_file(path))
		return options_refuse_suffix("ljrecord", suffixes_at, path);
	if (!output->format)
		output->format = default_format(&arguments->options);
	output->gzip = !output->format->is_packed && is_gzip(path, strlen(path));
	return -1;
}

int outputs_choose_formats(struct arguments *arguments)
{
	struct daemon_options *options = &arguments->options;

	if (options->output_count == 0) {
		arguments->own_output[0] = '?';
		outputs_add(arguments, arguments->own_output);
	}
	if (arguments->format && options->output_count > 1)
		return arguments_refuse("--format goes with one --output: with several, each name "
					"chooses the format",
					NULL);
	for (size_t i = 0; i < options->output_count; i++) {
		int ret = choose_format(arguments, &arguments->outputs[i]);

		if (ret >= 0)
			return ret;
	}
	options->outputs = arguments->outputs;
	return -1;
}

/* ---- Own names -------------------------------------------------------------------------- */

/* Copy a name that a process has chosen; only letters, digits and few others reach a path. */
static void copy_name(const char *name, char *ret_name, size_t size)
{
	size_t len = 0;

	for (; *name && len + 1 < size; name++) {
		bool is_plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
				(*name >= '0' && *name <= '9') || *name == '_' ||
				(len && (*name == '.' || *name == '-'));

		ret_name[len++] = is_plain ? *name : '_';
	}
	ret_name[len] = '\0';
}

/* The name that all processes have, or the command's; else ours. */
static void common_name(const struct arguments *arguments, char *ret_name, size_t size)
{
	const struct daemon_options *options = &arguments->options;
	const struct options_names *names = &arguments->names;
	struct attach_names found, first = { .command = "" };
	const char *name = "ljprof";

	if (arguments->command)
		name = name_of(arguments->command[0]);
	else if (!options->pid_count && names->count == 1 && names->exact_count == 1)
		name = names->words[0];
	for (size_t i = 0; i < options->pid_count && !options->name_count; i++) {
		if (!attach_names_of(options->pids[i], &found) ||
		    (i && strcmp(found.command, first.command) != 0)) {
			name = "ljprof";
			break;
		}
		first = found;
		name = first.command;
	}
	copy_name(name, ret_name, size);
}

void outputs_name_own(struct arguments *arguments)
{
	const struct daemon_options *options = &arguments->options;
	char name[48], pid[16] = "", date[32] = "", more[16] = "";
	time_t now = time(NULL);
	struct stat status;
	struct tm parts;

	if (!arguments->own_output[0])
		return;
	common_name(arguments, name, sizeof(name));
	if (options->pid_count == 1 && !options->name_count)
		snprintf(pid, sizeof(pid), "-%d", (int)options->pids[0]);
	/* A series adds the time itself. */
	if (options->rotate_s <= 0 && gmtime_r(&now, &parts))
		strftime(date, sizeof(date), "-%Y%m%dT%H%M%S", &parts);
	for (unsigned number = 0; number < NUMBERS_MAX; number++) {
		const char *suffix = arguments->outputs[0].format->suffixes;

		if (number)
			snprintf(more, sizeof(more), "_%u", number);
		snprintf(arguments->own_output, sizeof(arguments->own_output), "%s%s%s%s%.*s",
			 *name ? name : "process", pid, date, more, (int)strcspn(suffix, " "),
			 suffix);
		if (lstat(arguments->own_output, &status) != 0)
			break;
	}
}

/* ---- Files ------------------------------------------------------------------------------ */

static bool stat_output(const char *path, struct stat *ret_status)
{
	return (strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, ret_status)
				       : stat(path, ret_status)) == 0;
}

static bool are_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool stat_folder(const char *path, struct stat *ret_status)
{
	size_t len = (size_t)(name_of(path) - path);
	char *folder = len ? strndup(path, len) : strdup(".");
	bool good = folder && stat(folder, ret_status) == 0;

	free(folder);
	return good;
}

/* Whether two paths lead to the same file, existing or not. Devices do not count, because they
 * accept any data. */
static bool are_one(const char *one, const char *other)
{
	struct stat first, second;
	bool has_first = stat_output(one, &first), has_second = stat_output(other, &second);

	if (strcmp(one, other) == 0)
		return !has_first || !S_ISCHR(first.st_mode) || strcmp(one, "-") == 0;
	if (has_first && has_second)
		return are_same(&first, &second) && !S_ISCHR(first.st_mode);
	return !has_first && !has_second && strcmp(name_of(one), name_of(other)) == 0 &&
	       stat_folder(one, &first) && stat_folder(other, &second) && are_same(&first, &second);
}

static bool is_binary(const struct daemon_output *output)
{
	const struct format_report_ops *report = format_report_find(output->format->name);

	return output->gzip || !report || report->is_binary;
}

int outputs_check(const struct arguments *arguments)
{
	const struct daemon_options *options = &arguments->options;

	for (size_t i = 0; i < options->output_count; i++)
		if (options->rotate_s > 0 && is_no_file(options->outputs[i].path))
			return arguments_refuse("--rotate writes files, and this is not a file:",
						options->outputs[i].path);
	for (size_t i = 0; i < options->output_count; i++)
		if (is_binary(&options->outputs[i]) && stdio_is_terminal(options->outputs[i].path))
			return arguments_refuse("a terminal cannot show this format, so give "
						"--output FILE or redirect it:",
						options->outputs[i].format->name);
	for (size_t i = 0; i < options->output_count; i++)
		for (size_t k = 0; k < i; k++)
			if (are_one(options->outputs[k].path, options->outputs[i].path))
				return arguments_refuse("two outputs name the same file:",
							options->outputs[i].path);
	return -1;
}

bool outputs_lead_to(const struct arguments *arguments, int fd)
{
	const struct daemon_options *options = &arguments->options;
	struct stat output, status;

	if (fstat(fd, &status) != 0 || S_ISCHR(status.st_mode))
		return false;
	for (size_t i = 0; i < options->output_count; i++)
		if (stat_output(options->outputs[i].path, &output) && are_same(&output, &status))
			return true;
	return false;
}
