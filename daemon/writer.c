/* SPDX-License-Identifier: MIT */
/* The writer: a process of its own, without privileges, that turns messages into a file. */
#include "daemon/writer.h"

#include <cap-ng.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* The file is made readable at least this often while samples come. */
	COMMIT_INTERVAL_MS = 1000,
	/* And so often that a full disk loses little. */
	COMMIT_SAMPLES = 256,
	WRITER_NICE = 10,
};

/** The inside of the writer process. */
struct writing {
	struct message_receiver receiver;
	struct format_functions *functions;
	struct format_sink *sink;
	const struct format_writer_ops *format;
	void *self;
	uint64_t samples, committed;
	bool dirty, greeted;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

/* Whether all functions that a sample refers to were announced. */
static bool knows_functions(const struct writing *writing, const struct format_sample *sample)
{
	uint32_t count = format_functions_count(writing->functions);

	for (uint32_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function >= count)
			return false;
	return !sample->trace || sample->trace_function == FORMAT_NO_FUNCTION ||
	       sample->trace_function < count;
}

static int handle(struct writing *writing, const struct message *message, bool *ret_end,
		  struct failure *why)
{
	uint32_t id;

	if (!writing->greeted && message->type != MESSAGE_HELLO)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
	switch (message->type) {
	case MESSAGE_HELLO:
		writing->greeted = message->version == MESSAGE_VERSION;
		if (writing->greeted)
			return 0;
		break;
	case MESSAGE_FUNCTION:
		if (message->function.id != format_functions_count(writing->functions))
			break;
		return format_functions_add(writing->functions, &message->function.value, &id, why);
	case MESSAGE_SAMPLE:
		if (!knows_functions(writing, &message->sample))
			return failure_set(why, FAILURE_INVALID, 0, 0, 0,
					   "find a sample's functions");
		writing->samples++;
		writing->dirty = true;
		return writing->format->sample(writing->self, &message->sample, why);
	case MESSAGE_ACCOUNT:
		return writing->format->account
			       ? writing->format->account(writing->self, message->account, why)
			       : 0;
	case MESSAGE_END:
		*ret_end = true;
		return 0;
	default:
		break;
	}
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
}

static int commit(struct writing *writing, bool final, struct failure *why)
{
	if (!writing->dirty && !final)
		return 0;
	writing->dirty = false;
	writing->committed = writing->samples;
	return writing->format->commit(writing->self, final, why);
}

/* Until END, or until the recorder is gone. */
static int take_messages(struct writing *writing, struct failure *why)
{
	uint64_t commit_at_ms = now_ms() + COMMIT_INTERVAL_MS;
	bool end = false;

	while (!end) {
		struct pollfd poller = { .fd = writing->receiver.fd, .events = POLLIN };
		struct message message;
		int got;

		if (now_ms() >= commit_at_ms ||
		    writing->samples >= writing->committed + COMMIT_SAMPLES) {
			if (commit(writing, false, why) != 0)
				return -1;
			commit_at_ms = now_ms() + COMMIT_INTERVAL_MS;
		}
		if (!message_is_ready(&writing->receiver) &&
		    poll(&poller, 1, COMMIT_INTERVAL_MS) == 0)
			continue;
		got = message_receive(&writing->receiver, &message, why);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		if (handle(writing, &message, &end, why) != 0)
			return -1;
	}
	return 0;
}

/* The file is finished in any case: a recorder that was killed while it sent ends in the middle of
 * a message, and what came before that counts. */
static int write_all(struct writing *writing, struct failure *why)
{
	struct failure second;
	bool taken = take_messages(writing, why) == 0;

	return commit(writing, true, taken ? why : &second) == 0 && taken ? 0 : -1;
}

static int open_writing(struct writing *writing, int socket_fd, int output_fd,
			const struct format_options *options, struct failure *why)
{
	if (message_receiver_init(&writing->receiver, socket_fd, why) != 0)
		return -1;
	writing->functions = format_functions_create();
	if (!writing->functions)
		return failure_set_errno(why, ENOMEM, 0, "start the writer");
	if (format_sink_create(output_fd, &writing->sink, why) != 0)
		return -1;
	if (options->gzip)
		format_sink_compress(writing->sink);
	if (writing->format->open(writing->sink, writing->functions, options, &writing->self,
				  why) != 0)
		return -1;
	/* From here on the file is a profile, if an empty one. */
	return writing->format->commit(writing->self, false, why);
}

static void report(const struct writing *writing, int socket_fd, const struct failure *why, bool ok)
{
	struct message_status status = {
		.errnum = ok		? 0
			  : why->errnum ? why->errnum
					: EIO,
		.bytes = writing->sink ? format_sink_bytes(writing->sink) : 0,
		.samples = writing->samples,
	};
	struct message_queue queue;
	struct failure ignored;

	if (message_queue_init(&queue, socket_fd, &ignored) != 0)
		return;
	if (message_put_status(&queue, &status, &ignored) == 0)
		message_flush(&queue, &ignored);
	message_queue_deinit(&queue);
}

static void give_up_privileges(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_BOTH);
}

/* Encoding may wait: a tick that comes while the writer works must not. */
static void stand_back(void)
{
	const struct sched_param param = { .sched_priority = 0 };

	sched_setscheduler(0, SCHED_BATCH, &param);
	if (nice(WRITER_NICE) == -1)
		return; /* then the ticks are a little later */
}

static void close_others(int socket_fd, int output_fd)
{
	unsigned low = (unsigned)(socket_fd < output_fd ? socket_fd : output_fd);
	unsigned high = (unsigned)(socket_fd < output_fd ? output_fd : socket_fd);

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
}

static _Noreturn void run_writer(int socket_fd, int output_fd,
				 const struct format_writer_ops *format,
				 const struct format_options *options)
{
	struct writing writing = { .format = format };
	struct failure why = { 0 };
	bool ok;

	/* The recorder decides when the file ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	prctl(PR_SET_NAME, "ljprof-writer", 0, 0, 0);
	close_others(socket_fd, output_fd);
	give_up_privileges();
	stand_back();
	ok = open_writing(&writing, socket_fd, output_fd, options, &why) == 0 &&
	     write_all(&writing, &why) == 0;
	report(&writing, socket_fd, &why, ok);
	if (writing.self)
		format->close(writing.self);
	format_sink_destroy(writing.sink);
	format_functions_destroy(writing.functions);
	message_receiver_deinit(&writing.receiver);
	_exit(ok ? 0 : 1);
}

int writer_start(int output_fd, const struct format_writer_ops *format,
		 const struct format_options *options, struct writer *ret_writer,
		 struct failure *why)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return failure_set_errno(why, errno, 0, "start the writer");
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return failure_set_errno(why, errno, 0, "start the writer");
	}
	if (pid == 0)
		run_writer(fds[1], output_fd, format, options);
	close(fds[1]);
	close(output_fd);
	*ret_writer = (struct writer){ .pid = pid, .fd = fds[0] };
	if (message_queue_init(&ret_writer->queue, fds[0], why) != 0 ||
	    message_receiver_init(&ret_writer->receiver, fds[0], why) != 0 ||
	    message_put_hello(&ret_writer->queue, why) != 0) {
		struct message_status status;

		writer_collect(ret_writer, &status);
		return -1;
	}
	return 0;
}

bool writer_has_ended(const struct writer *writer)
{
	struct pollfd poller = { .fd = writer->fd, .events = POLLIN };

	return poll(&poller, 1, 0) > 0;
}

/* The last message. A writer that did not take ours is not waited for again. */
static enum writer_fate await_report(struct writer *writer, struct message_status *ret_status)
{
	uint64_t time_ms = now_ms(), end_ms = time_ms + MESSAGE_PATIENCE_MS;
	struct message message;
	struct failure why;
	int got = 0;

	while (!writer->queue.stuck && time_ms < end_ms && got <= 0) {
		struct pollfd poller = { .fd = writer->fd, .events = POLLIN };

		got = poll(&poller, 1, (int)(end_ms - time_ms));
		if (got < 0 && errno != EINTR)
			return WRITER_DIED;
		time_ms = now_ms();
	}
	if (got <= 0)
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
	shutdown(writer->fd, SHUT_WR);
	writer->fate = writer->receiver.bytes ? await_report(writer, ret_status) : WRITER_STUCK;
	if (writer->fate != WRITER_REPORTED)
		kill(writer->pid, SIGKILL); /* harmless where it is dead already */
	close(writer->fd);
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
		message_flush(&writer->queue, &why);
	writer_collect(writer, ret_status);
}
