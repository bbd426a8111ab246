/* SPDX-License-Identifier: MIT */
/*
 * How does one process keep the right to open events, and use it only for the recording?
 *
 * Source: perf_event_open(2), bpf(2), seccomp(2), pidfd_open(2), tgkill(2); Linux v6.1,
 * kernel/events/core.c, kernel/bpf/syscall.c (BPF_LINK_CREATE requires CAP_BPF before v5.19 if
 * kernel.unprivileged_bpf_disabled is set).
 */
#include "daemon/rights/event_opener.h"
#include "attach/clock.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/helper.h"
#include "daemon/rights/sandbox.h"
#include "daemon/tick_clock.h"

enum {
	/* As many as a recording has processes. */
	PROCESSES_MAX = 2048,
	/* Shorter periods could be used to slow a process down. */
	PERIOD_MIN_NS = 10 * 1000,
	/* Longest start-up of the opener. */
	START_S = 10,
	/* Answers that may be in the socket. The kernel limits descriptors in transit to
	 * RLIMIT_NOFILE, which is 1024 by default. */
	ASKED_MAX = 128,
	EVENT_FDS = 2,
};

struct request {
	int32_t pid, tid;
	uint64_t period_ns, cookie;
};

/** The event's descriptors come with it if errnum is 0. */
struct answer {
	uint64_t cookie; /* of the request */
	int32_t tid;
	int32_t errnum;
};

struct opener {
	pid_t pid;
	int fd;
	size_t asked; /* requests without an answer so far */
};

/** State of the opener process. */
struct opening {
	int fd, program_fd;
	pid_t recorder;
	bool grows;
	size_t count;
	struct {
		pid_t pid;
		int fd; /* a pidfd: while it lives, no other process has the number */
	} processes[PROCESSES_MAX];
};

/* ---- Which threads it opens events for -------------------------------------------------- */

static bool lives(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

/* EPERM means that the thread exists but signal 0 is not permitted: the kernel checks ESRCH
 * first. */
static bool is_thread_of(pid_t pid, pid_t tid)
{
	return tid > 0 && (syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM);
}

static void forget_ended(struct opening *opening)
{
	size_t kept = 0;

	for (size_t i = 0; i < opening->count; i++) {
		if (lives(opening->processes[i].fd))
			opening->processes[kept++] = opening->processes[i];
		else
			close(opening->processes[i].fd);
	}
	opening->count = kept;
}

static bool add_process(struct opening *opening, pid_t pid)
{
	int fd;

	if (pid <= 0)
		return false;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || opening->count == PROCESSES_MAX)
		forget_ended(opening);
	if (fd < 0)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return false;
	if (opening->count == PROCESSES_MAX) {
		close(fd);
		return false;
	}
	opening->processes[opening->count].pid = pid;
	opening->processes[opening->count++].fd = fd;
	return true;
}

static bool is_known(const struct opening *opening, pid_t pid)
{
	for (size_t i = 0; i < opening->count; i++)
		if (opening->processes[i].pid == pid && lives(opening->processes[i].fd))
			return true;
	return false;
}

/* ---- The opener process ----------------------------------------------------------------- */

/* @return 0 or an errno. */
static int open_event(struct opening *opening, const struct request *request,
		      struct attach_sampler_event *ret_event)
{
	const struct attach_sampler_request wanted = { .pid = request->pid,
						       .tid = request->tid,
						       .period_ns = request->period_ns,
						       .cookie = request->cookie };
	struct failure why;

	if (request->period_ns < PERIOD_MIN_NS)
		return EINVAL;
	if (!is_known(opening, request->pid) &&
	    !(opening->grows && add_process(opening, request->pid)))
		return is_thread_of(request->pid, request->tid) ? EPERM : ESRCH;
	if (!is_thread_of(request->pid, request->tid))
		return ESRCH;
	if (attach_sampler_open_event(opening->program_fd, &wanted, ret_event, &why) != 0)
		return why.errnum ? why.errnum : EINVAL;
	/* Meanwhile the number may have become a thread of another process. */
	if (is_thread_of(request->pid, request->tid) && is_known(opening, request->pid))
		return 0;
	attach_sampler_close_event(ret_event);
	return ESRCH;
}

/* @return 0 or an errno: the kernel may refuse more descriptors in transit. */
static int send_answer(int socket, const struct answer *answer,
		       const struct attach_sampler_event *event)
{
	const int fds[EVENT_FDS] = { event->event_fd, event->link_fd };

	/* If the recorder does not receive it, no further request comes, either. */
	return helper_send(socket, answer, sizeof(*answer), fds,
			   answer->errnum == 0 ? EVENT_FDS : 0);
}

static void serve(struct opening *opening)
{
	struct request request;
	struct iovec bytes = { .iov_base = &request, .iov_len = sizeof(request) };

	for (;;) {
		struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
		ssize_t len = recvmsg(opening->fd, &message, 0);
		struct attach_sampler_event event = { .event_fd = -1, .link_fd = -1 };
		struct answer answer;
		int errnum;

		if (len < 0 && errno == EINTR)
			continue;
		if (len != sizeof(request) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
			return;
		answer = (struct answer){ .cookie = request.cookie,
					  .tid = request.tid,
					  .errnum = open_event(opening, &request, &event) };
		errnum = send_answer(opening->fd, &answer, &event);
		/* This closes only our copies; the recorder has its own. */
		if (answer.errnum == 0) {
			close(event.event_fd);
			close(event.link_fd);
		}
		if (errnum && answer.errnum == 0) {
			answer.errnum = errnum;
			send_answer(opening->fd, &answer, &event);
		}
	}
}

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE 0 /* no BPF program for it, and so no opener */
#endif

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define ALLOW		 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE		 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW_CALL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), ALLOW
/* The parameters are int, so the kernel reads only the low half. If the call is another one, the
 * next rule loads its number again. */
#define ALLOW_CALL_WITH(call, parameter, value)                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(args[parameter]), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), ALLOW, REFUSE

/* Restrict the process to these calls from now on. Signals are only probed (0). */
static bool restrict_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
		REFUSE,
		LOAD(nr),
		ALLOW_CALL(recvmsg),
		ALLOW_CALL(sendmsg),
		ALLOW_CALL(close),
		ALLOW_CALL(perf_event_open),
		ALLOW_CALL(pidfd_open),
		ALLOW_CALL(exit),
		ALLOW_CALL(exit_group),
		ALLOW_CALL(rt_sigreturn),
		ALLOW_CALL(restart_syscall),
		ALLOW_CALL_WITH(bpf, 0, BPF_LINK_CREATE),
		ALLOW_CALL_WITH(tgkill, 2, 0),
		ALLOW_CALL_WITH(pidfd_send_signal, 1, 0),
#ifdef LJPROF_SANITIZED
		ALLOW_CALL(mmap),
		ALLOW_CALL(munmap),
		ALLOW_CALL(madvise),
#endif
		REFUSE,
	};
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]),
					    .filter = filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Open an event of our own: what refuses other threads' events also refuses this one. @return 0 or
 * an errno. */
static int try_open(const struct opening *opening)
{
	const struct attach_sampler_request own = { .pid = getpid(),
						    .tid = getpid(),
						    .period_ns = 1000000000,
						    .cookie = ATTACH_SAMPLER_NO_COOKIE };
	struct attach_sampler_event event;
	struct failure why;

	if (attach_sampler_open_event(opening->program_fd, &own, &event, &why) != 0)
		return why.errnum ? why.errnum : EINVAL;
	attach_sampler_close_event(&event);
	return 0;
}

/* Whether these rights suffice. A right that is given up does not come back, so a child process
 * tries it. @return 0 or an errno. */
static int try_rights(const struct opening *opening, const int *rights, size_t count)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0) {
		sandbox_keep_capabilities(rights, count);
		_exit(try_open(opening));
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return EINVAL;
	return WEXITSTATUS(status);
}

/* Keep only the rights that this kernel requires with its settings: all of them only if fewer fail.
 * @return 0, or an errno; then no right is kept, because none helped. */
static int keep_rights(const struct opening *opening)
{
	static const int needed[] = { CAP_PERFMON, CAP_BPF, CAP_SYS_ADMIN };
	int errnum = EACCES;

	for (size_t count = 2; count <= 3 && (errnum == EACCES || errnum == EPERM); count++) {
		errnum = try_rights(opening, needed, count);
		if (errnum == 0) {
			sandbox_keep_capabilities(needed, count);
			return 0;
		}
	}
	sandbox_keep_capabilities(needed, 0);
	return errnum;
}

static _Noreturn void run_opener(struct opening *opening, const pid_t *pids, size_t count)
{
	const struct attach_sampler_event nothing = { .event_fd = -1, .link_fd = -1 };
	struct answer ready = { 0 };
	int fds[] = { opening->fd, opening->program_fd };

	prctl(PR_SET_NAME, "ljprof-opener", 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* It ends with the recorder, whatever signals a terminal sends to both. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sandbox_close_others(fds, 2);
	for (size_t i = 0; i < count; i++)
		add_process(opening, pids[i]);
	ready.errnum = keep_rights(opening);
	/* Also if it is blocked when its socket closes. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() == opening->recorder && ready.errnum == 0 && restrict_calls()) {
		ready.errnum = EAGAIN; /* it has no descriptors */
		send_answer(opening->fd, &ready, &nothing);
		serve(opening);
	} else if (ready.errnum) {
		send_answer(opening->fd, &ready, &nothing);
	}
	_exit(0);
}

/* ---- The recorder's side ---------------------------------------------------------------- */

static const char step[] = "ask the opener for an event";
static const char starting[] = "start the opener of events";

/* @param ret_event Its descriptors are -1 if none came. @return The length, or -1 with errno. */
static ssize_t receive(const struct opener *opener, struct answer *ret_answer,
		       struct attach_sampler_event *ret_event, int flags)
{
	int fds[EVENT_FDS];
	ssize_t len =
		helper_receive(opener->fd, ret_answer, sizeof(*ret_answer), fds, EVENT_FDS, flags);

	*ret_event = (struct attach_sampler_event){ .event_fd = fds[0], .link_fd = fds[1] };
	return len;
}

int opener_ask(void *self, const struct attach_sampler_request *request, struct failure *why)
{
	const struct request wanted = { .pid = request->pid,
					.tid = request->tid,
					.period_ns = request->period_ns,
					.cookie = request->cookie };
	struct opener *opener = self;

	if (opener->asked == ASKED_MAX)
		return failure_set(why, FAILURE_TIMEOUT, 0, request->tid, 0, step);
	if (send(opener->fd, &wanted, sizeof(wanted), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    sizeof(wanted)) {
		opener->asked++;
		return 0;
	}
	if (errno == EAGAIN)
		return failure_set(why, FAILURE_TIMEOUT, 0, request->tid, 0, step);
	return failure_set_errno(why, errno, request->tid, step);
}

/* @return Whether there is something to receive, or the end of the stream, until that time. */
static bool await_answer(const struct opener *opener, uint64_t until_ns)
{
	struct pollfd answer = { .fd = opener->fd, .events = POLLIN };
	uint64_t time_ns = clock_now_ns();
	struct timespec rest;

	if (time_ns >= until_ns)
		return false;
	rest.tv_sec = (time_t)((until_ns - time_ns) / 1000000000u);
	rest.tv_nsec = (long)((until_ns - time_ns) % 1000000000u);
	return ppoll(&answer, 1, &rest, NULL) == 1;
}

int opener_take(void *self, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		struct failure *why)
{
	struct opener *opener = self;
	struct attach_sampler_event event;
	struct answer answer;
	ssize_t len = receive(opener, &answer, &event, MSG_DONTWAIT);

	if (len < 0 && errno == EAGAIN) {
		if (!await_answer(opener, until_ns))
			return 0;
		len = receive(opener, &answer, &event, MSG_DONTWAIT);
		if (len < 0 && errno == EAGAIN)
			return 0;
	}
	if (len != sizeof(answer)) {
		attach_sampler_close_event(&event);
		return failure_set_errno(why, len < 0 ? errno : EPIPE, 0, step);
	}
	opener->asked -= opener->asked > 0;
	*ret_answer = (struct attach_sampler_answer){ .cookie = answer.cookie, .event = event };
	if (answer.errnum == 0 && event.event_fd >= 0 && event.link_fd >= 0)
		return 1;
	attach_sampler_close_event(&event);
	ret_answer->event = (struct attach_sampler_event){ .event_fd = -1, .link_fd = -1 };
	failure_set_errno(&ret_answer->why, answer.errnum ? answer.errnum : EMFILE, answer.tid,
			  "count the thread's time");
	return 1;
}

/* @return 0, or an errno if the opener has ended, is too slow, or cannot open events. */
static int await_ready(const struct opener *opener)
{
	const uint64_t end_ns = clock_now_ns() + (uint64_t)START_S * 1000000000u;
	struct attach_sampler_event event;
	struct answer answer;
	ssize_t len;

	while (!await_answer(opener, end_ns))
		if (clock_now_ns() >= end_ns)
			return ETIMEDOUT;
	len = receive(opener, &answer, &event, MSG_DONTWAIT);
	if (len <= 0)
		return EPIPE;
	attach_sampler_close_event(&event);
	return len != sizeof(answer) ? EPIPE : answer.errnum == EAGAIN ? 0 : answer.errnum;
}

int opener_start(int program_fd, const pid_t *pids, size_t count, bool grows,
		 struct opener **ret_opener, struct failure *why)
{
	struct opener *opener = calloc(1, sizeof(*opener));
	struct opening *opening = calloc(1, sizeof(*opening));
	int fds[2] = { -1, -1 }, errnum = ENOMEM;

	if (!opener || !opening)
		goto failed;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		errnum = errno;
		goto failed;
	}
	opening->fd = fds[1];
	opening->program_fd = program_fd;
	opening->recorder = getpid();
	opening->grows = grows;
	opener->fd = fds[0];
	opener->pid = fork();
	if (opener->pid == 0)
		run_opener(opening, pids, count);
	errnum = errno;
	if (opener->pid < 0)
		goto failed;
	close(fds[1]);
	free(opening);
	errnum = await_ready(opener);
	if (errnum != 0) {
		opener_stop(opener);
		return failure_set_errno(why, errnum, 0, starting);
	}
	*ret_opener = opener;
	return 0;
failed:
	if (fds[0] >= 0) {
		close(fds[0]);
		close(fds[1]);
	}
	free(opener);
	free(opening);
	return failure_set_errno(why, errnum, 0, starting);
}

void opener_stop(struct opener *opener)
{
	if (!opener)
		return;
	close(opener->fd);
	/* It may be stopped, or blocked in the kernel by a target, and has nothing to finish. */
	kill(opener->pid, SIGKILL);
	while (waitpid(opener->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(opener);
}
