/* SPDX-License-Identifier: MIT */
/* How do we open files inside a target's root directory? */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "attach/process/process_internal.h"

int attach_root_open(pid_t pid)
{
	return process_open(pid, "root", O_PATH | O_DIRECTORY);
}

/* Whether a file is the kernel's own. Its content depends on its opener's rights, also on root's
 * capabilities, and reading it may have effects. No program is loaded from these file systems. */
static bool is_kernels(int fd)
{
	static const long types[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
				      SECURITYFS_MAGIC };
	struct statfs status;

	if (fstatfs(fd, &status) != 0)
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (status.f_type == types[i])
			return true;
	return false;
}

int attach_reopen_regular(int fd)
{
	struct stat status;
	char path[64];
	int opened = -1, errnum;

	if (fd < 0)
		return -1;
	errno = EINVAL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && !is_kernels(fd)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		/* Another process may hold a lease, and open(2) would wait for it. */
		opened = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	}
	errnum = errno;
	close(fd);
	errno = errnum;
	return opened;
}

int attach_root_open_file(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return attach_reopen_regular(fd);
}
