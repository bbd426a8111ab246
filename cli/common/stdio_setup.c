/* SPDX-License-Identifier: MIT */
/* What are a command's standard files: closed, or a terminal of which size? */
#include "cli/common/stdio_setup.h"

#include <fcntl.h>
#include <sys/ioctl.h>
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
