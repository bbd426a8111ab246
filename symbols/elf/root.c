/* SPDX-License-Identifier: MIT */
/* How do we open files below the root directory of a target, of a core file, or our own? */
#include "symbols/elf/root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/process.h"

void symbols_root_init_live(struct symbols_root *root, pid_t pid)
{
	root->fd = attach_root_open(pid);
	root->pid = pid;
}

void symbols_root_init_recorded(struct symbols_root *root)
{
	*root = (struct symbols_root){ .fd = -1 };
}

int symbols_root_init_folder(struct symbols_root *root, const char *path, struct failure *why)
{
	symbols_root_init_recorded(root);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root->fd < 0 ? failure_set_errno(why, errno, 0, "open the sysroot") : 0;
}

void symbols_root_deinit(struct symbols_root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	for (struct symbols_fetched *file = root->fetched, *next; file; file = next) {
		next = file->next;
		free(file->path);
		free(file);
	}
	*root = (struct symbols_root){ .fd = -1 };
}

int symbols_root_open_own(const char *path)
{
	return attach_reopen_regular(open(path, O_PATH | O_CLOEXEC));
}

int symbols_root_open(const struct symbols_root *root, const char *path)
{
	int fd;

	if (path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	if (root->fd < 0)
		return symbols_root_open_own(path);
	fd = attach_root_open_file(root->fd, path);
	/* Linux before 5.6 lacks the call, and some sandboxes do not know it. Links to absolute
	 * paths then lead out of the root; the identity check refuses their targets. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = attach_reopen_regular(openat(root->fd, path + 1, O_PATH | O_CLOEXEC));
	return fd;
}

int symbols_root_open_mapping(const struct symbols_root *root, uint64_t start, uint64_t end)
{
	char path[96];

	if (!root->pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)root->pid,
		 start, end);
	return attach_reopen_regular(open(path, O_PATH | O_CLOEXEC));
}

int symbols_root_open_program(const struct symbols_root *root)
{
	char path[32];

	if (!root->pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)root->pid);
	return attach_reopen_regular(open(path, O_PATH | O_CLOEXEC));
}
