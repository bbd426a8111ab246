/* SPDX-License-Identifier: MIT */
/* Which LuaJIT processes are there? Another process makes the list, and this one receives it. */
#include "daemon/list.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "daemon/list/scan.h"
#include "daemon/rights/sandbox.h"
#include "daemon/targets/name_patterns.h"

enum {
	NS_PER_MS = 1000 * 1000,
	/* A process in trouble may block who reads its maps. */
	PATIENCE_MS = 8000,
	/* For the VMs, after all processes are known. */
	MORE_PATIENCE_MS = 2000,
};

static _Noreturn void run(const struct daemon_list_options *options, int fd, pid_t parent)
{
	static const int needed[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1); /* the parent died meanwhile */
	signal(SIGPIPE, SIG_IGN);
	sandbox_close_others(&fd, 1);
	sandbox_keep_capabilities(needed, sizeof(needed) / sizeof(needed[0]));
	scan_run(options, fd);
	_exit(0);
}

/* Nothing that a target chose reaches a terminal, whatever happens in the other process. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool take_listed(struct daemon_list *list, size_t *size, const struct scan_message *message)
{
	struct daemon_listed *listed;

	if (message->index > list->count || message->index >= SCAN_LISTED_MAX ||
	    !ARRAY_RESERVE(list->processes, *size, (size_t)message->index + 1))
		return false;
	list->count += message->index == list->count;
	listed = &list->processes[message->index];
	*listed = message->listed;
	clean(listed->name, sizeof(listed->name));
	clean(listed->program, sizeof(listed->program));
	clean(listed->fork, sizeof(listed->fork));
	return true;
}

/* Receive one message. @return false, and why, if it does not come. */
static bool receive(int fd, uint64_t end_ns, struct scan_message *ret_message,
		    const char **ret_reason)
{
	size_t got = 0;

	while (got < sizeof(*ret_message)) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		uint64_t now_ns = clock_now_ns();
		ssize_t len;

		*ret_reason = "it took too long";
		if (now_ns >= end_ns)
			return false;
		if (poll(&poller, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1) <= 0)
			continue;
		len = read(fd, (char *)ret_message + got, sizeof(*ret_message) - got);
		*ret_reason = "the process that makes it has ended";
		if (len == 0 || (len < 0 && errno != EINTR))
			return false;
		got += len > 0 ? (size_t)len : 0;
	}
	return true;
}

static void receive_all(int fd, struct daemon_list *list)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)PATIENCE_MS * NS_PER_MS;
	const char *reason;
	struct scan_message message;
	size_t size = 0;
	bool is_examined = false;

	while (receive(fd, end_ns, &message, &reason)) {
		if (message.kind == SCAN_LISTED && take_listed(list, &size, &message))
			continue;
		if (message.kind == SCAN_LISTED) {
			reason = "out of memory";
			break;
		}
		is_examined = true;
		memcpy(list->note, message.note, sizeof(list->note));
		clean(list->note, sizeof(list->note));
		list->denied = message.denied;
		list->matched = message.matched;
		end_ns = clock_now_ns() + (uint64_t)MORE_PATIENCE_MS * NS_PER_MS;
		if (message.kind == SCAN_END)
			return;
	}
	if (!is_examined)
		snprintf(list->note, sizeof(list->note), "the list is not complete: %s", reason);
}

/* A wrong pattern is refused here, because the other process cannot say so. */
static int check_patterns(const struct daemon_list_options *options, struct failure *why)
{
	struct name_patterns *patterns;

	if (name_patterns_create(options->names, options->name_count, &patterns, why) != 0)
		return -1;
	name_patterns_destroy(patterns);
	return 0;
}

int daemon_list_processes(const struct daemon_list_options *options, struct daemon_list *ret_list,
			  struct failure *why)
{
	pid_t own = getpid(), pid;
	int fds[2];

	*ret_list = (struct daemon_list){ 0 };
	if (check_patterns(options, why) != 0)
		return -1;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return failure_set_errno(why, errno, 0, "list the processes");
	pid = fork();
	if (pid == 0)
		run(options, fds[1], own);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return failure_set_errno(why, errno, 0, "list the processes");
	}
	receive_all(fds[0], ret_list);
	close(fds[0]);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

void daemon_list_deinit(struct daemon_list *list)
{
	free(list->processes);
	*list = (struct daemon_list){ 0 };
}
