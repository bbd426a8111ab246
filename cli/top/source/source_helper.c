/* SPDX-License-Identifier: MIT */
/* How does a separate process keep the privileges, and open files for the screen? */
#include "cli/top/source/source_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/helper.h"

enum {
	WAIT_MS = 500,
	WHY_MAX = 80,
};

struct source_helper {
	pid_t pid;
	int fd;
	uint32_t sequence; /* of the last question */
	char why[WHY_MAX]; /* of the last answer */
	int errnum;
};

/** A request. */
struct question {
	uint32_t sequence;
	bool makes_file; /* create a file with that name; pid is unused */
	int32_t pid;
	char chunk[PATH_MAX + 1];
};

/** The descriptor comes with it, if there is one. */
struct answer {
	uint32_t sequence;
	int32_t errnum; /* why the file was not created */
	char why[WHY_MAX];
};

/* ---- The helper's side ------------------------------------------------------------------ */

static void send_answer(int socket, const struct answer *answer, int fd)
{
	if (helper_send(socket, answer, sizeof(*answer), &fd, fd >= 0) != 0)
		_exit(1); /* the caller has ended */
}

static int make_file(const char *name)
{
	return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Check, because the caller may be compromised. */
static bool is_watched(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return count == 0;
}

/* @return The descriptor, or -1. */
static int answer_question(const struct question *question, const pid_t *pids, size_t count,
			   struct answer *answer)
{
	const char *why = "the process is not sampled";
	int fd;

	answer->sequence = question->sequence;
	if (question->makes_file) {
		/* Only in the working directory. */
		errno = EACCES;
		fd = strchr(question->chunk, '/') ? -1 : make_file(question->chunk);
		answer->errnum = fd < 0 ? errno : 0;
		return fd;
	}
	fd = is_watched(pids, count, question->pid)
		     ? top_source_open(question->pid, question->chunk, &why)
		     : -1;
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	return fd;
}

static void serve(int socket, const pid_t *pids, size_t count)
{
	struct question question;
	ssize_t len;

	while ((len = recv(socket, &question, sizeof(question), 0)) != 0) {
		struct answer answer = { 0 };
		int fd;

		if (len < 0 && errno == EINTR)
			continue;
		if (len != sizeof(question))
			break;
		question.chunk[sizeof(question.chunk) - 1] = '\0';
		fd = answer_question(&question, pids, count, &answer);
		send_answer(socket, &answer, fd);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

/* ---- The caller's side ------------------------------------------------------------------ */

struct source_helper *source_helper_create(const pid_t *pids, size_t count)
{
	struct source_helper *helper = calloc(1, sizeof(*helper));
	pid_t parent = getpid();
	int sockets[2];

	if (!helper || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		free(helper);
		return NULL;
	}
	helper->pid = fork();
	if (helper->pid == 0) {
		close(sockets[0]);
		prctl(PR_SET_NAME, "ljtop-source");
		/* The helper ends with us, not by a Ctrl-C that is for us. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		serve(sockets[1], pids, count);
	}
	close(sockets[1]);
	helper->fd = sockets[0];
	if (helper->pid > 0)
		return helper;
	close(helper->fd);
	free(helper);
	return NULL;
}

void source_helper_destroy(struct source_helper *helper)
{
	if (!helper)
		return;
	close(helper->fd);
	kill(helper->pid, SIGKILL);
	while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(helper);
}

/* @return The descriptor, -1 if there is none; -2 if no answer came. */
static int take_answer(const struct source_helper *helper, struct answer *ret_answer)
{
	struct pollfd wait = { .fd = helper->fd, .events = POLLIN };
	int fd;

	if (poll(&wait, 1, WAIT_MS) <= 0 ||
	    helper_receive(helper->fd, ret_answer, sizeof(*ret_answer), &fd, 1, 0) !=
		    sizeof(*ret_answer))
		return -2;
	ret_answer->why[WHY_MAX - 1] = '\0';
	return fd;
}

/* Receive the answer to the last question, and skip late answers to earlier ones. */
static int await_answer(struct source_helper *helper)
{
	struct answer answer = { 0 };
	int fd;

	while ((fd = take_answer(helper, &answer)) != -2) {
		if (answer.sequence == helper->sequence) {
			memcpy(helper->why, answer.why, sizeof(helper->why));
			helper->errnum = answer.errnum;
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -2;
}

/* @return As await_answer(). */
static int ask(struct source_helper *helper, bool makes_file, pid_t pid, const char *text)
{
	struct question question = { .sequence = ++helper->sequence,
				     .makes_file = makes_file,
				     .pid = pid };

	memcpy(question.chunk, text, strlen(text));
	if (send(helper->fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -2;
	return await_answer(helper);
}

int source_helper_read(struct source_helper *helper, pid_t pid, const char *chunk,
		       struct top_source *ret_source, const char **ret_why)
{
	int fd, ret;

	if (strlen(chunk) > PATH_MAX) {
		*ret_why = "its path is too long";
		return -1;
	}
	fd = ask(helper, false, pid, chunk);
	if (fd < 0) {
		*ret_why = fd == -1 ? helper->why : "it takes too long to open it";
		return -1;
	}
	ret = top_source_load(fd, ret_source, ret_why);
	close(fd);
	return ret;
}

int source_helper_create_file(struct source_helper *helper, const char *name, int *ret_errnum)
{
	int fd;

	if (strchr(name, '/') || strlen(name) > NAME_MAX) {
		fd = make_file(name);
		*ret_errnum = errno;
		return fd;
	}
	fd = ask(helper, true, 0, name);
	if (fd < 0)
		*ret_errnum = fd == -1 ? helper->errnum : ETIMEDOUT;
	return fd < 0 ? -1 : fd;
}
