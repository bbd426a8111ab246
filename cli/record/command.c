/* SPDX-License-Identifier: MIT */
/* How does ljrecord start a command? */
#include "cli/record/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* As a shell's exit code for a command that is not found. */
	COMMAND_NOT_RUN = 127,
};

static bool read_id(const char *name, unsigned long *ret_id)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text)
		return false;
	errno = 0;
	*ret_id = strtoul(text, &end, 10);
	return !errno && !*end && *ret_id < UINT32_MAX;
}

/* Root through sudo becomes the user who called sudo. */
static int become_invoker(void)
{
	unsigned long uid, gid;
	const struct passwd *user;

	if (geteuid() != 0 || !read_id("SUDO_UID", &uid) || !read_id("SUDO_GID", &gid) || uid == 0)
		return 0;
	user = getpwuid((uid_t)uid);
	if (!user)
		fprintf(stderr,
			"ljrecord: user %lu has no name here: the command runs without the user's "
			"further groups\n",
			uid);
	if (user ? initgroups(user->pw_name, (gid_t)gid) : setgroups(0, NULL))
		return -1;
	return setgid((gid_t)gid) || setuid((uid_t)uid) ? -1 : 0;
}

/* The recorder reads the byte after this process has ended. If the recorder is gone, nobody needs
 * it. */
static _Noreturn void fail(int failed_fd)
{
	ssize_t unused = write(failed_fd, "f", 1);

	(void)unused;
	_exit(COMMAND_NOT_RUN);
}

static _Noreturn void run_command(char **argv, int go_fd, int failed_fd)
{
	char go;

	if (read(go_fd, &go, 1) != 1)
		_exit(0); /* the recorder gave up and has said why */
	if (become_invoker() != 0) {
		fprintf(stderr, "ljrecord: cannot become the invoking user: %s\n", strerror(errno));
		fail(failed_fd);
	}
	execvp(argv[0], argv);
	/* It may also have been meant as the name of a process. */
	fprintf(stderr, "ljrecord: cannot run %s: %s%s\n", argv[0], strerror(errno),
		errno == ENOENT && !strchr(argv[0], '/')
			? ", and no LuaJIT process has that name: ljtop --list shows all"
			: "");
	fail(failed_fd);
}

static void close_pipe(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

int command_start(char **argv, struct command *ret_command)
{
	int fds[2], failed[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0) {
		fprintf(stderr, "ljrecord: cannot start %s: %s\n", argv[0], strerror(errno));
		return -1;
	}
	if (pipe2(failed, O_CLOEXEC | O_NONBLOCK) != 0) {
		fprintf(stderr, "ljrecord: cannot start %s: %s\n", argv[0], strerror(errno));
		close_pipe(fds);
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		run_command(argv, fds[0], failed[1]);
	}
	if (pid < 0) {
		fprintf(stderr, "ljrecord: cannot start %s: %s\n", argv[0], strerror(errno));
		close_pipe(fds);
		close_pipe(failed);
		return -1;
	}
	close(fds[0]);
	close(failed[1]);
	*ret_command = (struct command){ .pid = pid, .go_fd = fds[1], .failed_fd = failed[0] };
	return 0;
}

bool command_finish(struct command *command, const volatile sig_atomic_t *stop)
{
	bool has_failed;
	char byte;

	close(command->go_fd); /* fails harmlessly if the recorder has closed it */
	while (waitpid(command->pid, NULL, *stop ? WNOHANG : 0) < 0 && errno == EINTR)
		;
	has_failed = read(command->failed_fd, &byte, 1) == 1;
	close(command->failed_fd);
	return !has_failed;
}
