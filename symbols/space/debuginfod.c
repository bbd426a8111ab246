/* SPDX-License-Identifier: MIT */
/* How does a child process fetch debug files? */
#include "symbols/space/debuginfod.h"
#include "attach/clock.h"

#include <cap-ng.h>
#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** We load the library only here, so only users who want to fetch need it. */
#define LIBRARY	      "libdebuginfod.so.1"
#define URLS_VARIABLE "DEBUGINFOD_URLS"
/** Exit status of a child that found no library. */
#define EXIT_NO_LIBRARY 3
/** Interval at which a wait checks whether to end: the signal may have arrived just before the
 *  wait. */
#define POLL_MS 100
/** Time that a child gets to end, before we kill it. */
#define GRACE_MS 2000
/** Prefix of the names of incomplete files, and a bound of the descriptors among which they are. */
#define PARTIAL_NAME   "debuginfo."
#define PARTIAL_FD_MAX 256
/** Alarm that ends a child without a parent, some time after its limit. */
#define ALARM_S 5

/* ---- The child -------------------------------------------------------------------------- */

struct client {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_set_progressfn) set_progress;
	__typeof__(&debuginfod_find_debuginfo) find;
};

static volatile sig_atomic_t asked_to_end;
static uint64_t child_end_ms;

static void note_signal(int number)
{
	(void)number;
	asked_to_end = 1;
}

static bool is_over(void)
{
	return asked_to_end || clock_now_ms() >= child_end_ms;
}

/** Remove an incomplete file: the library writes it to "debuginfo.XXXXXX" in its cache. */
static void remove_partial(void)
{
	char link[64], path[PATH_MAX];

	for (int fd = 0; fd < PARTIAL_FD_MAX; fd++) {
		const char *slash;
		ssize_t len;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, path, sizeof(path) - 1);
		if (len <= 0)
			continue;
		path[len] = '\0';
		slash = strrchr(path, '/');
		if (slash && strncmp(slash + 1, PARTIAL_NAME, strlen(PARTIAL_NAME)) == 0)
			unlink(path);
	}
}

/**
 * The library calls this at least once a second. If we asked it to cancel, it would clean up
 * itself; but version 0.188 would also note in its cache that no server has the file.
 * Source: elfutils debuginfod/debuginfod-client.c, debuginfod_query_server().
 */
static int leave_when_over(debuginfod_client *handle, long done, long all)
{
	(void)handle, (void)done, (void)all;
	if (!is_over())
		return 0;
	remove_partial();
	_exit(0);
}

#ifdef LJPROF_STATIC
/** The library needs the host's C library, which may differ from ours. */
#define LOAD_STEP "load " LIBRARY ", as this program is linked statically"

static bool load_client(struct client *ret_client)
{
	(void)ret_client;
	return false;
}
#else
#define LOAD_STEP "load " LIBRARY

/** ISO C cannot convert an object pointer to a function pointer; POSIX requires that it works. */
static bool find_function(void *library, const char *name, void *ret_function)
{
	void *function = dlsym(library, name);

	memcpy(ret_function, &function, sizeof(function));
	return function;
}

static bool load_client(struct client *ret_client)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);

	return library && find_function(library, "debuginfod_begin", &ret_client->begin) &&
	       find_function(library, "debuginfod_set_progressfn", &ret_client->set_progress) &&
	       find_function(library, "debuginfod_find_debuginfo", &ret_client->find);
}
#endif

/** Send the parent an index, a length and a path. A pipe accepts so few bytes in one write. */
static bool tell(int fd, uint32_t index, const char *path)
{
	struct {
		uint32_t index, len;
		char path[SYMBOLS_FETCH_PATH_MAX];
	} message = { .index = index, .len = (uint32_t)strlen(path) };
	size_t size = offsetof(__typeof__(message), path) + message.len, done = 0;

	if (message.len == 0 || message.len >= sizeof(message.path))
		return true;
	memcpy(message.path, path, message.len);
	while (done < size) {
		ssize_t some = write(fd, (const char *)&message + done, size - done);

		if (some < 0 && errno == EINTR)
			continue;
		if (some <= 0)
			return false;
		done += (size_t)some;
	}
	return true;
}

/** Give up the rights that a network client does not need. */
static int give_up(int fd)
{
	struct sigaction note = { .sa_handler = note_signal };
	const int ends[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &note, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (fd != STDERR_FILENO + 1)
		fd = dup2(fd, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0U, 0);
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_BOTH);
	return fd;
}

static void run_child(const struct symbols_fetch *list, size_t count, uint64_t end_ms, int fd)
{
	uint64_t now = clock_now_ms(), left_ms = end_ms > now ? end_ms - now : 0;
	struct client client;
	debuginfod_client *handle;

	fd = give_up(fd);
	child_end_ms = end_ms;
	alarm((unsigned)(left_ms / 1000 + ALARM_S));
	if (!load_client(&client))
		_exit(EXIT_NO_LIBRARY);
	handle = client.begin();
	if (!handle)
		_exit(EXIT_NO_LIBRARY);
	client.set_progress(handle, leave_when_over);
	for (size_t i = 0; i < count && !is_over(); i++) {
		char *path = NULL;
		int found = client.find(handle, list[i].build_id, (int)list[i].build_id_len, &path);

		if (found >= 0)
			close(found);
		if (found >= 0 && path && !tell(fd, (uint32_t)i, path))
			break;
		free(path);
	}
	_exit(0);
}

/* ---- The parent ------------------------------------------------------------------------- */

/**
 * Read exactly @p len bytes before the end.
 * @return 1; 0 if the child has closed the pipe; -1 if the time is over.
 */
static int read_all(int fd, void *ret_bytes, size_t len, const struct symbols_fetch_end *end)
{
	for (size_t done = 0; done < len;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t some;

		if (symbols_fetch_is_over(end))
			return -1;
		if (poll(&ready, 1, POLL_MS) <= 0)
			continue;
		some = read(fd, (char *)ret_bytes + done, len - done);
		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return -1;
		if (some == 0)
			return 0;
		done += (size_t)some;
	}
	return 1;
}

/** Read the child's answers, until it ends or the time is over. */
static void listen_to(int fd, struct symbols_fetch *list, size_t count,
		      const struct symbols_fetch_end *end)
{
	for (;;) {
		uint32_t head[2];
		char *path;

		if (read_all(fd, head, sizeof(head), end) <= 0 || head[0] >= count ||
		    head[1] >= SYMBOLS_FETCH_PATH_MAX)
			return;
		path = calloc(1, head[1] + 1);
		if (!path || read_all(fd, path, head[1], end) <= 0) {
			free(path);
			return;
		}
		free(list[head[0]].path);
		list[head[0]].path = path;
	}
}

/**
 * Wait for the child, and kill it if it does not end.
 * @return Its status, or -1 if killed.
 */
static int end_child(pid_t child)
{
	const struct timespec rest = { .tv_nsec = 10000000 };
	uint64_t end_ms = clock_now_ms() + GRACE_MS;
	int status = 0;
	pid_t ended;

	kill(child, SIGTERM);
	while ((ended = waitpid(child, &status, WNOHANG)) == 0 && clock_now_ms() < end_ms)
		nanosleep(&rest, NULL);
	if (ended == child)
		return status;
	kill(child, SIGKILL);
	while (ended == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return -1;
}

bool symbols_fetch_is_over(const struct symbols_fetch_end *end)
{
	return (end->stop && *end->stop) || clock_now_ms() >= end->at_ms;
}

void symbols_fetch_begin(unsigned limit_ms, const volatile sig_atomic_t *stop,
			 struct symbols_fetch_end *ret_end)
{
	*ret_end = (struct symbols_fetch_end){ .at_ms = clock_now_ms() + limit_ms, .stop = stop };
}

int symbols_fetch(struct symbols_fetch *list, size_t count, const struct symbols_fetch_end *end,
		  struct failure *why)
{
	int ends[2], status;
	pid_t child;

	if (count == 0 || symbols_fetch_is_over(end))
		return 0;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return failure_set_errno(why, errno, 0, "fetch debug files");
	child = fork();
	if (child == 0)
		run_child(list, count, end->at_ms, ends[1]);
	status = errno;
	close(ends[1]);
	if (child > 0)
		listen_to(ends[0], list, count, end);
	close(ends[0]);
	if (child < 0)
		return failure_set_errno(why, status, 0, "fetch debug files");
	status = end_child(child);
	if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_LIBRARY)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, LOAD_STEP);
	return 0;
}

bool symbols_fetch_is_asked_for(void)
{
	const char *urls = getenv(URLS_VARIABLE);

	return urls && *urls;
}
