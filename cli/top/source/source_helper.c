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

struct top_opener {
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

struct top_opener *top_opener_create(const pid_t *pids, size_t count)
{
	struct top_opener *opener = calloc(1, sizeof(*opener));
	pid_t parent = getpid();
	int sockets[2];

	if (!opener || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		free(opener);
		return NULL;
	}
	opener->pid = fork();
	if (opener->pid == 0) {
		close(sockets[0]);
		prctl(PR_SET_NAME, "ljtop-opener");
		/* The helper ends with us, not by a Ctrl-C that is for us. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		serve(sockets[1], pids, count);
	}
	close(sockets[1]);
	opener->fd = sockets[0];
	if (opener->pid > 0)
		return opener;
	close(opener->fd);
	free(opener);
	return NULL;
}

void top_opener_destroy(struct top_opener *opener)
{
	if (!opener)
		return;
	close(opener->fd);
	kill(opener->pid, SIGKILL);
	while (waitpid(opener->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(opener);
}

/* @return The descriptor, -1 if there is none; -2 if no answer came. */
static int take_answer(const struct top_opener *opener, struct answer *ret_answer)
{
	struct pollfd wait = { .fd = opener->fd, .events = POLLIN };
	int fd;

	if (poll(&wait, 1, WAIT_MS) <= 0 ||
	    helper_receive(opener->fd, ret_answer, sizeof(*ret_answer), &fd, 1, 0) !=
		    sizeof(*ret_answer))
		return -2;
	ret_answer->why[WHY_MAX - 1] = '\0';
	return fd;
}

/* Receive the answer to the last question, and skip late answers to earlier ones. */
static int await_answer(struct top_opener *opener)
{
	struct answer answer = { 0 };
	int fd;

	while ((fd = take_answer(opener, &answer)) != -2) {
		if (answer.sequence == opener->sequence) {
			memcpy(opener->why, answer.why, sizeof(opener->why));
			opener->errnum = answer.errnum;
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -2;
}

/* @return As await_answer(). */
static int ask(struct top_opener *opener, bool makes_file, pid_t pid, const char *text)
{
	struct question question = { .sequence = ++opener->sequence,
				     .makes_file = makes_file,
				     .pid = pid };

	memcpy(question.chunk, text, strlen(text));
	if (send(opener->fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -2;
	return await_answer(opener);
}

int top_opener_read(struct top_opener *opener, pid_t pid, const char *chunk,
		    struct top_source *ret_source, const char **ret_why)
{
	int fd, ret;

	if (strlen(chunk) > PATH_MAX) {
		*ret_why = "its path is too long";
		return -1;
	}
	fd = ask(opener, false, pid, chunk);
	if (fd < 0) {
		*ret_why = fd == -1 ? opener->why : "it takes too long to open it";
		return -1;
	}
	ret = top_source_load(fd, ret_source, ret_why);
	close(fd);
	return ret;
}

int top_opener_create_file(struct top_opener *opener, const char *name, int *ret_errnum)
{
	int fd;

	if (strchr(name, '/') || strlen(name) > NAME_MAX) {
		fd = make_file(name);
		*ret_errnum = errno;
		return fd;
	}
	fd = ask(opener, true, 0, name);
	if (fd < 0)
		*ret_errnum = fd == -1 ? opener->errnum : ETIMEDOUT;
	return fd < 0 ? -1 : fd;
}
