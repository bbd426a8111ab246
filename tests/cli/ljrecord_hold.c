/* SPDX-License-Identifier: MIT */
/* usage: ljrecord_hold PID: trace a process without stopping it, until killed. Prints "ready". */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2 || ptrace(PTRACE_SEIZE, (pid_t)atoi(argv[1]), NULL, NULL) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
