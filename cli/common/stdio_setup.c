/* SPDX-License-Identifier: MIT */
/* How does a command start if standard streams are closed? */
#include "cli/common/stdio_setup.h"

#include <fcntl.h>
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
