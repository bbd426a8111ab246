/* SPDX-License-Identifier: MIT */
/* The inside of the writer: a process of its own, without privileges, that turns messages into
 * files. */
#include "daemon/writer/writer_main.h"
#include "attach/clock.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/rights/sandbox.h"
#include "daemon/tick_clock.h"
#include "daemon/writer/output_set.h"

enum {
	/* The file is made readable at least this often while samples come. */
	COMMIT_INTERVAL_MS = 1000,
	/* And so often that a full disk loses little. */
	COMMIT_SAMPLES = 256,
	WRITER_NICE = 10,
	/* A sample may be so old when it comes; the time of a file that gets none is over then. */
	SAMPLE_AGE_NS = 1000 * 1000 * 1000,
};

/** The inside of the writer process. */
struct writing {
	struct message_receiver receiver;
	struct format_functions *functions;
	struct written_set set;
	struct placer placer;
	uint64_t samples, committed;
	bool greeted, ended;
	int errnum; /* of what is no output's */
};

static int errnum_of(const struct failure *why)
{
	return why->errnum ? why->errnum : EIO;
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

/* ---- Messages --------------------------------------------------------------------------- */

static int handle(struct writing *writing, const struct message *message, struct failure *why)
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
		written_set_sample(&writing->set, &message->sample);
		return 0;
	case MESSAGE_ACCOUNT:
		written_set_account(&writing->set, message->account);
		return 0;
	case MESSAGE_SNAPSHOT:
		written_set_snapshot(&writing->set, message->snapshot_ns);
		return 0;
	case MESSAGE_END:
		writing->ended = true;
		return 0;
	default:
		break;
	}
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
}

/* Until END, or until the recorder is gone. */
static int take_messages(struct writing *writing, struct failure *why)
{
	uint64_t commit_at_ms = clock_now_ms() + COMMIT_INTERVAL_MS;

	while (!writing->ended) {
		struct pollfd poller = { .fd = writing->receiver.fd, .events = POLLIN };
		struct message message;
		int got;

		if (clock_now_ms() >= commit_at_ms ||
		    writing->samples >= writing->committed + COMMIT_SAMPLES) {
			writing->committed = writing->samples;
			written_set_commit(&writing->set);
			commit_at_ms = clock_now_ms() + COMMIT_INTERVAL_MS;
		}
		if (!message_is_ready(&writing->receiver) &&
		    poll(&poller, 1, COMMIT_INTERVAL_MS) == 0) {
			written_set_rotate_at(&writing->set, clock_now_ns() - SAMPLE_AGE_NS);
			continue;
		}
		got = message_receive(&writing->receiver, &message, why);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		if (handle(writing, &message, why) != 0)
			return -1;
	}
	return 0;
}

/* The files are finished in any case: a recorder that was killed while it sent ends in the middle
 * of a message, and what came before that counts. Without an END and without a sample nothing was
 * recorded, and what was there before stays. */
static void write_all(struct writing *writing)
{
	struct failure why;

	if (take_messages(writing, &why) != 0)
		writing->errnum = errnum_of(&why);
	written_set_finish(&writing->set, writing->ended && writing->samples == 0);
}

static bool any_has_folder(const struct writer_options *options)
{
	for (size_t i = 0; i < options->count; i++)
		if (options->files[i].folder_fd >= 0)
			return true;
	return false;
}

/* With privileges still. */
static int start_placer(struct writing *writing, const struct writer_options *options,
			struct failure *why)
{
	if (!any_has_folder(options))
		return 0;
	if (placer_start(options->files, options->count, options->rotate_ns > 0, options->keep,
			 &writing->placer, why) != 0)
		return -1;
	writing->set.shared.placer = &writing->placer;
	return 0;
}

static void begin_set(struct writing *writing, const struct writer_options *options)
{
	struct written_set *set = &writing->set;

	set->shared.functions = writing->functions;
	set->shared.options = options->format;
	set->shared.is_series = options->rotate_ns > 0;
	set->rotate_ns = options->rotate_ns;
	set->rotate_at_ns = options->format.start_ns + options->rotate_ns;
	set->count = options->count;
	for (size_t i = 0; i < options->count; i++)
		set->outputs[i] = (struct written){ .file = &options->files[i],
						    .shared = &set->shared,
						    .index = i };
	written_set_begin(set);
}

static int open_writing(struct writing *writing, int socket_fd,
			const struct writer_options *options, struct failure *why)
{
	if (message_receiver_init(&writing->receiver, socket_fd, why) != 0)
		return -1;
	writing->functions = format_functions_create();
	if (!writing->functions)
		return failure_set_errno(why, ENOMEM, 0, "start the writer");
	begin_set(writing, options);
	return 0;
}

static void report(struct writing *writing, int socket_fd)
{
	struct message_status status = { .errnum = writing->errnum, .samples = writing->samples };
	struct message_queue queue;
	struct failure ignored;

	for (size_t i = 0; i < writing->set.count; i++) {
		status.outputs[i] = writing->set.outputs[i].result;
		if (status.outputs[i].errnum)
			status.errnum = status.outputs[i].errnum;
	}
	if (message_queue_init(&queue, socket_fd, &ignored) != 0)
		return;
	if (message_put_status(&queue, &status, &ignored) == 0)
		message_flush(&queue, &ignored);
	message_queue_deinit(&queue);
}

/* Encoding may wait: a tick that comes while the writer works must not. */
static void stand_back(void)
{
	const struct sched_param param = { .sched_priority = 0 };

	sched_setscheduler(0, SCHED_BATCH, &param);
	if (nice(WRITER_NICE) == -1)
		return; /* then the ticks are a little later */
}

static void ignore_signals(void)
{
	/* The recorder decides when the file ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* What was opened, and no folders: new files come from the placer. */
static void give_up_privileges(int socket_fd, int placer_fd, const struct writer_options *options)
{
	int fds[DAEMON_OUTPUTS_MAX + 2];
	size_t count = 0;

	for (size_t i = 0; i < options->count; i++)
		fds[count++] = options->files[i].fd;
	fds[count++] = socket_fd;
	fds[count++] = placer_fd;
	sandbox_close_others(fds, count);
	sandbox_keep_capabilities(NULL, 0);
}

_Noreturn void writing_run(int socket_fd, const struct writer_options *options,
			   struct writer_pulse *pulse)
{
	struct writing writing = { .set = { .pulse = pulse }, .placer = { .fd = -1 } };
	struct failure why;

	ignore_signals();
	prctl(PR_SET_NAME, "ljprof-writer", 0, 0, 0);
	if (start_placer(&writing, options, &why) != 0) {
		writing.errnum = errnum_of(&why);
	} else {
		give_up_privileges(socket_fd, writing.placer.fd, options);
		stand_back();
		if (open_writing(&writing, socket_fd, options, &why) == 0)
			write_all(&writing);
		else
			writing.errnum = errnum_of(&why);
	}
	for (size_t i = 0; i < writing.set.count; i++)
		written_deinit(&writing.set.outputs[i]);
	/* Names are given and removed before anyone hears that it is done. */
	if (writing.set.shared.placer)
		placer_stop(&writing.placer);
	/* Where memory lacked, the report needs some. */
	format_functions_destroy(writing.functions);
	message_receiver_deinit(&writing.receiver);
	report(&writing, socket_fd);
	_exit(writing.errnum ? 1 : 0);
}
