/* SPDX-License-Identifier: MIT */
/* Many processes without LuaJIT that sleep, and some that come and go. usage: many_target COUNT.
 * Ends with its parent's pipe, on standard input. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIFE_US = 5000 };

static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return pid;
}

/* One process after the other, each for a few milliseconds. */
static void come_and_go(void)
{
	for (;;) {
		pid_t pid = fork_child();

		if (pid == 0) {
			usleep(LIFE_US);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
		else
			usleep(LIFE_US);
	}
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	char byte;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork_child();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			for (;;)
				pause();
		}
	}
	if (fork_child() == 0)
		come_and_go();
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
