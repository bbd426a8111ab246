/* SPDX-License-Identifier: MIT */
/* How does the recorder start, feed and end the writer process? */
#include "daemon/writer/writer.h"
#include "attach/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/tick_clock.h"
#include "daemon/writer/writer_main.h"

enum {
	/* Interval of checks for signs of life of a writer that receives nothing. */
	LIFE_POLL_MS = 250,
	/* A writer that works for this time without receiving or sending anything hangs. */
	WORK_MAX_MS = 600000,
};

/** When to stop waiting for the writer, whatever it does. */
struct wait_end {
	uint64_t time_ns;
	const volatile sig_atomic_t *asked; /* or NULL */
};

static const struct wait_end no_end = { .time_ns = UINT64_MAX };

static bool is_over(const struct wait_end *end)
{
	return (end->asked && *end->asked) || clock_now_ns() >= end->time_ns;
}

/* Release the resources of a writer that did not start. */
static int give_up_start(int errnum, struct writer_progress *progress, const int fds[2],
			 struct failure *why)
{
	if (progress != MAP_FAILED)
		munmap(progress, sizeof(*progress));
	if (fds[0] >= 0) {
		close(fds[0]);
		close(fds[1]);
	}
	return failure_set_errno(why, errnum, 0, "start the writer");
}

int writer_start(const struct writer_options *options, struct writer *ret_writer,
		 struct failure *why)
{
	struct writer_progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2] = { -1, -1 };
	pid_t pid;

	if (progress == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return give_up_start(errno, progress, fds, why);
	pid = fork();
	if (pid < 0)
		return give_up_start(errno, progress, fds, why);
	if (pid == 0)
		writer_run(fds[1], options, progress);
	close(fds[1]);
	*ret_writer = (struct writer){ .pid = pid, .fd = fds[0], .progress = progress };
	if (message_queue_init(&ret_writer->queue, fds[0], why) != 0 ||
	    message_receiver_init(&ret_writer->receiver, fds[0], why) != 0 ||
	    message_put_hello(&ret_writer->queue, why) != 0) {
		struct message_status status;

		writer_collect(ret_writer, &status);
		return -1;
	}
	return 0;
}

bool writer_has_failed(const struct writer *writer)
{
	struct pollfd poller = { .fd = writer->fd, .events = POLLIN };

	return atomic_load(&writer->progress->failed) || poll(&poller, 1, 0) > 0;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return atomic_load(&writer->progress->largest_bytes);
}

/* Processor time of the writer; a writer that is stuck on its disk or pipe uses none. */
static uint64_t used_ns(const struct writer *writer)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(writer->pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Wait until it receives or sends something, within a limit since its last sign of life, and until
 * @p end. */
static bool await_writer(struct writer *writer, short events, const struct wait_end *end)
{
	uint64_t time_ms = clock_now_ms(), end_ms = time_ms + MESSAGE_PATIENCE_MS;
	uint64_t last_ms = time_ms + WORK_MAX_MS;
	uint64_t used = used_ns(writer), last = used;

	while (!writer->queue.stuck && !is_over(end) && time_ms < end_ms && time_ms < last_ms) {
		struct pollfd poller = { .fd = writer->fd, .events = events };
		int got = poll(&poller, 1, LIFE_POLL_MS);

		if (got > 0 || (got < 0 && errno != EINTR))
			return true;
		time_ms = clock_now_ms();
		used = used_ns(writer);
		if (used != last)
			end_ms = time_ms + MESSAGE_PATIENCE_MS;
		last = used;
	}
	return false;
}

int writer_send(struct writer *writer, size_t rest, uint64_t until_ns,
		const volatile sig_atomic_t *stop, struct failure *why)
{
	const struct wait_end end = { .time_ns = until_ns, .asked = stop };
	int sent;

	for (;;) {
		sent = message_flush_now(&writer->queue, why);
		if (sent != 0 || message_queued(&writer->queue) <= rest)
			return sent < 0 ? -1 : 0;
		if (await_writer(writer, POLLOUT, &end))
			continue;
		if (is_over(&end))
			return 0;
		writer->queue.stuck = true;
		return failure_set(why, FAILURE_TIMEOUT, 0, 0, 0, "send samples to the writer");
	}
}

/* Receive the last message. Do not wait again for a writer that did not receive ours. */
static enum writer_fate await_report(struct writer *writer, struct message_status *ret_status)
{
	struct message message;
	struct failure why;

	if (!await_writer(writer, POLLIN, &no_end))
		return WRITER_STUCK;
	if (message_receive(&writer->receiver, &message, &why) != 1 ||
	    message.type != MESSAGE_STATUS)
		return WRITER_DIED;
	*ret_status = message.status;
	return WRITER_REPORTED;
}

void writer_collect(struct writer *writer, struct message_status *ret_status)
{
	*ret_status = (struct message_status){ .errnum = EPIPE };
	for (size_t i = 0; i < DAEMON_OUTPUTS_MAX; i++)
		ret_status->outputs[i].errnum = EPIPE;
	shutdown(writer->fd, SHUT_WR);
	writer->fate = writer->receiver.bytes ? await_report(writer, ret_status) : WRITER_STUCK;
	if (writer->fate != WRITER_REPORTED)
		kill(writer->pid, SIGKILL); /* harmless if it is already dead */
	close(writer->fd);
	munmap(writer->progress, sizeof(*writer->progress));
	writer->wait_status = 0;
	while (waitpid(writer->pid, &writer->wait_status, 0) < 0 && errno == EINTR)
		;
	message_queue_deinit(&writer->queue);
	message_receiver_deinit(&writer->receiver);
}

void writer_finish(struct writer *writer, struct message_status *ret_status)
{
	struct failure why;

	if (message_put_end(&writer->queue, &why) == 0)
		writer_send(writer, 0, UINT64_MAX, NULL, &why);
	writer_collect(writer, ret_status);
}
