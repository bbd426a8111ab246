/* SPDX-License-Identifier: MIT */
/* Standard streams: open, or a command does not begin. */
#include "cli/common/stdio_setup.h"

#include <fcntl.h>
#include <unistd.h>

/* What is opened later takes none of these numbers, so that no message goes into a file or a socket
 * of ours. Opened the wrong way round, as by glibc before setuid programs: reading and writing
 * fail. Source: glibc 2.36, csu/check_fds.c. */
void stdio_occupy_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
}
