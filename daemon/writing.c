/* SPDX-License-Identifier: MIT */
/* The inside of the writer: a process of its own, without privileges, that turns messages into
 * files. */
#include "daemon/writing.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/sandbox.h"
#include "daemon/written.h"

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
	struct written_shared shared;
	struct written outputs[DAEMON_OUTPUTS_MAX];
	size_t count;
	struct placer placer;
	struct writer_pulse *pulse;
	uint64_t samples, committed;
	uint64_t rotate_ns, rotate_at_ns; /* 0: no series */
	bool greeted, ended;
	int errnum; /* of what is no output's */
};

static uint64_t now_ms(void)
{
	return daemon_now_ns() / 1000000u;
}

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

/* ---- Outputs ---------------------------------------------------------------------------- */

/* The recorder ends a recording of which an output has failed; until it does the others get what
 * comes. */
static void note_failure(struct writing *writing)
{
	atomic_store(&writing->pulse->failed, true);
}

static void put_account(struct writing *writing, const char *text)
{
	struct failure why;

	for (size_t i = 0; i < writing->count; i++)
		if (written_account(&writing->outputs[i], text, &why) != 0)
			note_failure(writing);
}

/* What the recorder ends a recording by that is to end at some size. */
static void tell_bytes(struct writing *writing)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < writing->count; i++)
		if (written_bytes(&writing->outputs[i]) > largest)
			largest = written_bytes(&writing->outputs[i]);
	atomic_store(&writing->pulse->largest_bytes, largest);
}

static void commit(struct writing *writing)
{
	struct failure why;

	writing->committed = writing->samples;
	for (size_t i = 0; i < writing->count; i++)
		if (written_commit(&writing->outputs[i], &why) != 0)
			note_failure(writing);
	tell_bytes(writing);
}

/* A large file takes long, and there may be several: each is a sign of life. */
static void finish_files(struct writing *writing, bool is_empty_too)
{
	struct failure why;

	for (size_t i = 0; i < writing->count; i++) {
		if (written_finish(&writing->outputs[i], is_empty_too, &why) != 0)
			note_failure(writing);
		atomic_fetch_add(&writing->pulse->beats, 1);
	}
	tell_bytes(writing);
}

/* ---- Series ----------------------------------------------------------------------------- */

static void begin_files(struct writing *writing)
{
	struct failure why;

	for (size_t i = 0; i < writing->count; i++)
		if (written_begin(&writing->outputs[i], &why) != 0)
			note_failure(writing);
}

/* Between two samples, so that each is in one file. */
static void rotate(struct writing *writing, uint64_t begin_ns)
{
	struct format_options *options = &writing->shared.options;
	struct timespec now;
	uint64_t age_ns;

	finish_files(writing, false);
	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = daemon_now_ns() - begin_ns;
	options->start_ns = begin_ns;
	options->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - age_ns;
	writing->rotate_at_ns = begin_ns + writing->rotate_ns;
	begin_files(writing);
}

/* Begin the files that a moment belongs to, unless it is before their time: samples of one tick
 * may come in any order. */
static void rotate_at(struct writing *writing, uint64_t time_ns)
{
	uint64_t over_ns;

	if (!writing->rotate_ns || time_ns < writing->rotate_at_ns)
		return;
	over_ns = (time_ns - writing->rotate_at_ns) % writing->rotate_ns;
	rotate(writing, time_ns - over_ns);
}

/* What is there so far is to be read now. */
static void snapshot(struct writing *writing)
{
	struct failure why;

	if (writing->rotate_ns) {
		rotate(writing, daemon_now_ns());
		return;
	}
	for (size_t i = 0; i < writing->count; i++)
		if (written_snapshot(&writing->outputs[i], &why) != 0)
			note_failure(writing);
}

static void put_sample(struct writing *writing, const struct format_sample *sample)
{
	struct failure why;

	rotate_at(writing, sample->time_ns);
	writing->samples++;
	for (size_t i = 0; i < writing->count; i++)
		if (written_sample(&writing->outputs[i], sample, &why) != 0)
			note_failure(writing);
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
		put_sample(writing, &message->sample);
		return 0;
	case MESSAGE_ACCOUNT:
		put_account(writing, message->account);
		return 0;
	case MESSAGE_SNAPSHOT:
		snapshot(writing);
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
	uint64_t commit_at_ms = now_ms() + COMMIT_INTERVAL_MS;

	while (!writing->ended) {
		struct pollfd poller = { .fd = writing->receiver.fd, .events = POLLIN };
		struct message message;
		int got;

		if (now_ms() >= commit_at_ms ||
		    writing->samples >= writing->committed + COMMIT_SAMPLES) {
			commit(writing);
			commit_at_ms = now_ms() + COMMIT_INTERVAL_MS;
		}
		if (!message_is_ready(&writing->receiver) &&
		    poll(&poller, 1, COMMIT_INTERVAL_MS) == 0) {
			rotate_at(writing, daemon_now_ns() - SAMPLE_AGE_NS);
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
	finish_files(writing, writing->ended && writing->samples == 0);
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
	writing->shared.placer = &writing->placer;
	return 0;
}

static int open_writing(struct writing *writing, int socket_fd,
			const struct writer_options *options, struct failure *why)
{
	if (message_receiver_init(&writing->receiver, socket_fd, why) != 0)
		return -1;
	writing->functions = format_functions_create();
	if (!writing->functions)
		return failure_set_errno(why, ENOMEM, 0, "start the writer");
	writing->shared.functions = writing->functions;
	writing->shared.options = options->format;
	writing->shared.is_series = options->rotate_ns > 0;
	writing->rotate_ns = options->rotate_ns;
	writing->rotate_at_ns = options->format.start_ns + options->rotate_ns;
	writing->count = options->count;
	for (size_t i = 0; i < options->count; i++)
		writing->outputs[i] = (struct written){ .file = &options->files[i],
							.shared = &writing->shared,
							.index = i };
	begin_files(writing);
	return 0;
}

static void report(struct writing *writing, int socket_fd)
{
	struct message_status status = { .errnum = writing->errnum, .samples = writing->samples };
	struct message_queue queue;
	struct failure ignored;

	for (size_t i = 0; i < writing->count; i++) {
		status.outputs[i] = writing->outputs[i].result;
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
	struct writing writing = { .pulse = pulse, .placer = { .fd = -1 } };
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
	for (size_t i = 0; i < writing.count; i++)
		written_deinit(&writing.outputs[i]);
	/* Names are given and removed before anyone hears that it is done. */
	if (writing.shared.placer)
		placer_stop(&writing.placer);
	report(&writing, socket_fd);
	format_functions_destroy(writing.functions);
	message_receiver_deinit(&writing.receiver);
	_exit(writing.errnum ? 1 : 0);
}
