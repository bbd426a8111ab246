/* SPDX-License-Identifier: MIT */
/* What are a command's standard files: closed, or a terminal of which size? */
#include "cli/common/stdio_setup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files opened later do not get these numbers, so no message goes into one of our files or sockets.
 * As glibc does for setuid programs, open them in the wrong direction: reading and writing fail.
 * Source: glibc 2.36, csu/check_fds.c. */
void stdio_occupy_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
}

bool stdio_terminal_size(int fd, unsigned *ret_lines, unsigned *ret_columns)
{
	struct winsize size;

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || !size.ws_row || !size.ws_col)
		return false;
	*ret_lines = size.ws_row;
	*ret_columns = size.ws_col;
	return true;
}

bool stdio_is_terminal(const char *path)
{
	struct stat status;
	bool is_there;
	int fd;

	if (strcmp(path, "-") == 0)
		return isatty(STDOUT_FILENO);
	/* Opening other devices may have effects. */
	if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
		return false;
	fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	is_there = fd >= 0 && isatty(fd);
	if (fd >= 0)
		close(fd);
	return is_there;
}
