/* SPDX-License-Identifier: MIT */
/* How are the files of a recording opened before privileges are given up? */
#include "daemon/files/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_pipe(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* @return The descriptor, or -1 with errno. */
static int open_existing(const char *path)
{
	/* A pipe that is also open for reading would never report the end of its reader. */
	int fd = open(path, (is_pipe(path) ? O_WRONLY : O_RDWR) | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EINVAL))
		fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd;
}

static int open_in_place(const char *path, struct output_file *file)
{
	struct stat status;

	file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	file->created = file->fd >= 0;
	if (file->fd < 0 && errno == EEXIST)
		file->fd = open_existing(path);
	if (file->fd < 0 && (errno == EACCES || errno == EINVAL)) {
		int errnum = errno;

		file->fd = open_existing(path);
		/* The file does not exist, and the folder is not writable. */
		errno = errno == ENOENT ? errnum : errno;
	}
	if (file->fd < 0 || fstat(file->fd, &status) != 0)
		return -1;
	file->can_empty = S_ISREG(status.st_mode);
	file->has_old = file->can_empty && status.st_size > 0;
	return 0;
}

/* The caller owns our standard output, and may append to it. */
static int open_stdout(struct output_file *file)
{
	file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? -1 : 0;
}

/* ---- Files in folders ------------------------------------------------------------------- */

/* Whether the name still leads to the opened file. If not, another user chooses which file is
 * replaced, and who owns the new one. */
static bool is_same(const struct output_file *file, const struct stat *old)
{
	struct stat status;

	return fstatat(file->folder_fd, file->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_dev == old->st_dev && status.st_ino == old->st_ino;
}

/* Whether another file can replace this one. A mounted file, as in containers, and another user's
 * file in a folder such as /tmp cannot be replaced. */
static bool is_replaceable(const struct output_file *file, const struct stat *old)
{
	struct statx extended;
	struct stat folder;

	if (fstat(file->folder_fd, &folder) != 0)
		return false;
	if ((folder.st_mode & S_ISVTX) && geteuid() != 0 && old->st_uid != geteuid() &&
	    folder.st_uid != geteuid())
		return false;
	return statx(file->folder_fd, file->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &extended) ==
		       0 &&
	       !(extended.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Open the folder of @p path, and keep the name in it. @return 0, or -1 with errno: no files can be
 * created. */
static int open_folder(const char *path, struct output_file *file)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder = slash ? strndup(path, (size_t)(name - path)) : strdup(".");

	if (!folder)
		return -1;
	if (!*name || strlen(name) > NAME_MAX) {
		free(folder);
		errno = *name ? ENAMETOOLONG : EISDIR;
		return -1;
	}
	file->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (file->folder_fd < 0 || faccessat(file->folder_fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
		return -1;
	memcpy(file->name, name, strlen(name) + 1);
	file->stem_len = format_stem_len(file->name);
	return 0;
}

static void close_folder(struct output_file *file)
{
	if (file->folder_fd >= 0)
		close(file->folder_fd);
	file->folder_fd = -1;
}

/* Replace the file when the new one is complete, if possible; else write in place. */
static void open_replaced(const char *path, const struct stat *old, struct output_file *file)
{
	char *real = realpath(path, NULL); /* a link remains, and leads to the new file */

	if (!real || open_folder(real, file) != 0 || !is_same(file, old) ||
	    !is_replaceable(file, old)) {
		close_folder(file);
		*file->name = '\0';
	} else {
		close(file->fd);
		file->fd = -1;
		file->replaces = true;
		file->mode = old->st_mode & 07777;
		file->uid = old->st_uid;
		file->gid = old->st_gid;
	}
	free(real);
}

static int open_buffered(const char *path, struct output_file *file)
{
	struct stat status;

	/* As everywhere, do not write to a dangling link. */
	if (lstat(path, &status) != 0 && errno == ENOENT)
		return open_folder(path, file);
	file->fd = open_existing(path);
	if (file->fd < 0 || fstat(file->fd, &status) != 0)
		return -1;
	file->can_empty = S_ISREG(status.st_mode);
	if (file->can_empty)
		open_replaced(path, &status, file);
	file->has_old = file->fd >= 0 && file->can_empty && status.st_size > 0;
	return 0;
}

static int open_series(const char *path, struct output_file *file)
{
	if (open_folder(path, file) != 0)
		return -1;
	if (strlen(file->name) + OUTPUT_SERIES_MORE <= NAME_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* ---- All -------------------------------------------------------------------------------- */

int output_open(const struct daemon_output *output, bool is_series, struct output_file *ret_file)
{
	struct output_file file = { .path = output->path,
				    .format = output->format,
				    .gzip = output->gzip,
				    .fd = -1,
				    .folder_fd = -1 };
	int ret;

	if (is_series)
		ret = open_series(output->path, &file);
	else if (strcmp(output->path, "-") == 0)
		ret = open_stdout(&file);
	else if (output->format->is_buffered)
		ret = open_buffered(output->path, &file);
	else
		ret = open_in_place(output->path, &file);
	if (ret != 0) {
		int errnum = errno;

		output_close(&file);
		errno = errnum;
		return -1;
	}
	*ret_file = file;
	return 0;
}

void output_close(struct output_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	close_folder(file);
}

void output_remove(const struct output_file *file, bool is_unused)
{
	struct stat status;

	if (!file->created)
		return;
	/* An empty file is not a profile, not even an empty one. */
	if (is_unused || (stat(file->path, &status) == 0 && status.st_size == 0))
		unlink(file->path);
}

const char *output_describe_rest(const struct output_file *file, bool is_series,
				 const struct daemon_output_result *result)
{
	struct stat status;

	if (is_series && !file->format->is_buffered)
		return "what was written is readable";
	if (is_series)
		return result->files ? "the earlier files are complete" : "nothing was written";
	if (*file->name)
		return result->files	? "the previous profile is unchanged"
		       : file->replaces ? "the old file is unchanged"
					: "no file is left";
	if (strcmp(file->path, "-") == 0 ? fstat(STDOUT_FILENO, &status)
					 : stat(file->path, &status))
		return "no file is left";
	if (!S_ISREG(status.st_mode) || file->format->is_buffered)
		return "the profile is incomplete";
	return result->bytes || status.st_size ? "what was written is readable"
					       : "nothing was written";
}
