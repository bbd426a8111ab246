/* SPDX-License-Identifier: MIT */
/* Opening files inside of a target's root directory. */
#include "symbols/elf/root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void symbols_root_init_live(struct symbols_root *root, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
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

/** Turn an O_PATH descriptor of a regular file into one for reading; takes @p fd over. */
static int reopen_regular(int fd)
{
	struct stat status;
	char path[64];
	int opened = -1, errnum;

	if (fd < 0)
		return -1;
	errno = EINVAL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		/* Another process may hold a lease on it, for which open(2) would wait. */
		opened = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	}
	errnum = errno;
	close(fd);
	errno = errnum;
	return opened;
}

int symbols_root_open_own(const char *path)
{
	return reopen_regular(open(path, O_PATH | O_CLOEXEC));
}

int symbols_root_open(const struct symbols_root *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int fd;

	if (path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	if (root->fd < 0)
		return symbols_root_open_own(path);
	fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	/* Linux before 5.6, and sandboxes that do not know the call. Links to absolute paths then
	 * lead out of the root, and what they lead to fails the identity check. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root->fd, path + 1, O_PATH | O_CLOEXEC);
	return reopen_regular(fd);
}

int symbols_root_open_mapping(const struct symbols_root *root, uint64_t start, uint64_t end)
{
	char path[96];

	if (!root->pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)root->pid,
		 start, end);
	return reopen_regular(open(path, O_PATH | O_CLOEXEC));
}
