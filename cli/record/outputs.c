/* SPDX-License-Identifier: MIT */
/* Which formats and files do -o and -f name? */
#include "cli/record/outputs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool outputs_add(struct arguments *arguments, const char *path)
{
	if (arguments->options.output_count == DAEMON_OUTPUTS_MAX)
		return false;
	arguments->outputs[arguments->options.output_count++].path = path;
	return true;
}

/* ---- Formats ---------------------------------------------------------------------------- */

/* Choose by the output's name. */
static void choose_format(struct daemon_output *output, const struct format_writer_ops *given)
{
	const char *path = output->path;
	size_t len = strlen(path);

	output->format = given ? given : format_writer_for(path);
	if (!output->format)
		output->format = format_writers[0];
	output->gzip = !output->format->is_packed && len > 3 && path[len - 4] != '/' &&
		       strcmp(path + len - 3, ".gz") == 0;
}

int outputs_choose_formats(struct arguments *arguments)
{
	struct daemon_options *options = &arguments->options;

	if (options->output_count == 0)
		outputs_add(arguments, "ljprof.bin");
	if (arguments->format && options->output_count > 1)
		return arguments_refuse("--format goes with one --output: with several, each name "
					"chooses the format",
					NULL);
	for (size_t i = 0; i < options->output_count; i++)
		choose_format(&arguments->outputs[i], arguments->format);
	options->outputs = arguments->outputs;
	return -1;
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

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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

/* Whether the path is not a regular file, so that a name with a time would be a different file
 * beside it. */
static bool is_no_file(const char *path)
{
	struct stat status;

	return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

int outputs_check(const struct arguments *arguments)
{
	const struct daemon_options *options = &arguments->options;

	for (size_t i = 0; i < options->output_count; i++)
		if (options->rotate_s > 0 && is_no_file(options->outputs[i].path))
			return arguments_refuse("--rotate writes files, and this is not a file:",
						options->outputs[i].path);
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
