/* SPDX-License-Identifier: MIT */
/* How do the two processes of a live session start: the sampler, and the caller without
 * privileges? */
#include "daemon/live/live_start.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/live/live_session.h"
#include "daemon/rights/sandbox.h"

enum {
	/* The sampler lets go of its threads within some ticks, and stops a search of memory at
	 * once. */
	END_PATIENCE_MS = 3000,
	END_NAP_NS = 5 * 1000 * 1000,
};

static volatile sig_atomic_t sampler_stop;

static void on_end(int number)
{
	(void)number;
	sampler_stop = 1;
}

/* The caller handles keys and decides when the sampler ends. Ctrl-Z could stop the sampler while it
 * has stopped a thread of the target, which would then wait for the user. */
static void set_signals(void)
{
	const struct sigaction action = { .sa_handler = on_end };

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTSTP, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGWINCH, SIG_DFL);
	sigaction(SIGTERM, &action, NULL);
}

/* The caller owns the terminal and any pipe whose end somebody waits for. */
static void close_others(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; null >= 0 && i < 3; i++)
		dup2(null, i);
	sandbox_close_others(&fd, 1);
}

static _Noreturn void run_sampler(const struct daemon_options *options, int fd, pid_t parent)
{
	static struct daemon_stats stats;
	struct daemon_options own = *options;
	char text[512];

	prctl(PR_SET_NAME, "ljtop-sampler", 0, 0, 0);
	set_signals();
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	if (getppid() != parent)
		_exit(1); /* the parent died meanwhile */
	close_others(fd);
	own.feeds = true;
	own.channel_fd = fd;
	own.stop = &sampler_stop;
	own.outputs = NULL;
	own.output_count = 0;
	own.save_images = NULL;
	own.progress = NULL;
	own.notice = NULL;
	own.go_fd = own.failed_fd = -1;
	daemon_record(&own, &stats, text, sizeof(text));
	daemon_stats_deinit(&stats);
	_exit(0);
}

/* @return 0, or -1 if we still have them. */
static int give_up_privileges(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	capng_clear(CAPNG_SELECT_BOTH);
	return capng_apply(CAPNG_SELECT_CAPS) == 0 ? 0 : -1;
}

int live_start_sampler(const struct daemon_options *options, pid_t *ret_pid, int *ret_fd,
		       struct failure *why)
{
	pid_t own = getpid(), pid;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return failure_set_errno(why, errno, 0, "start the sampler");
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return failure_set_errno(why, errno, 0, "start the sampler");
	}
	if (pid == 0)
		run_sampler(options, fds[1], own);
	close(fds[1]);
	if (give_up_privileges() != 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(fds[0]);
		return failure_set(why, FAILURE_SYSTEM, EPERM, 0, 0, "give up privileges");
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}

void live_end_sampler(struct daemon_live *session)
{
	const struct timespec nap = { .tv_nsec = END_NAP_NS };

	if (session->fd >= 0)
		close(session->fd);
	session->fd = -1;
	if (session->pid <= 0)
		return;
	kill(session->pid, SIGTERM);
	for (int i = 0; i < END_PATIENCE_MS; i += END_NAP_NS / 1000000) {
		pid_t got = waitpid(session->pid, NULL, WNOHANG);

		if (got == session->pid || (got < 0 && errno != EINTR)) {
			session->pid = 0;
			return;
		}
		nanosleep(&nap, NULL);
	}
	/* No thread stays stopped: the kernel detaches what the sampler traced. */
	kill(session->pid, SIGKILL);
	while (waitpid(session->pid, NULL, 0) < 0 && errno == EINTR)
		;
	session->pid = 0;
}
