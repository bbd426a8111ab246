/* SPDX-License-Identifier: MIT */
/* How does the writer process, which has no privileges, turn messages into files? */
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
	/* While samples arrive, the file is made readable at least this often. */
	COMMIT_INTERVAL_MS = 1000,
	/* Also after this many samples, so that a full disk loses little. */
	COMMIT_SAMPLES = 256,
	WRITER_NICE = 10,
	/* Oldest age of a sample when it arrives. A file's time without samples ends after this
	 * delay. */
	SAMPLE_AGE_NS = 1000 * 1000 * 1000,
};

/** State of the writer process. */
struct writer_state {
	struct message_receiver receiver;
	struct format_functions *functions;
	struct output_set set;
	struct file_helper file_helper;
	uint64_t samples, committed;
	bool greeted, ended;
	int errnum; /* of failures that belong to no output */
};

static int errnum_of(const struct failure *why)
{
	return why->errnum ? why->errnum : EIO;
}

/* Whether all functions of a sample were announced. */
static bool knows_functions(const struct writer_state *writer_state,
			    const struct format_sample *sample)
{
	uint32_t count = format_functions_count(writer_state->functions);

	for (uint32_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function >= count)
			return false;
	return !sample->trace || sample->trace_function == FORMAT_NO_FUNCTION ||
	       sample->trace_function < count;
}

/* ---- Messages --------------------------------------------------------------------------- */

static int handle(struct writer_state *writer_state, const struct message *message,
		  struct failure *why)
{
	uint32_t id;

	if (!writer_state->greeted && message->type != MESSAGE_HELLO)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
	switch (message->type) {
	case MESSAGE_HELLO:
		writer_state->greeted = message->version == MESSAGE_VERSION;
		if (writer_state->greeted)
			return 0;
		break;
	case MESSAGE_FUNCTION:
		if (message->function.id != format_functions_count(writer_state->functions))
			break;
		return format_functions_add(writer_state->functions, &message->function.value, &id,
					    why);
	case MESSAGE_SAMPLE:
		if (!knows_functions(writer_state, &message->sample))
			return failure_set(why, FAILURE_INVALID, 0, 0, 0,
					   "find a sample's functions");
		writer_state->samples++;
		output_set_sample(&writer_state->set, &message->sample);
		return 0;
	case MESSAGE_NOTES:
		output_set_notes(&writer_state->set, message->notes);
		return 0;
	case MESSAGE_SNAPSHOT:
		output_set_snapshot(&writer_state->set, message->snapshot_ns);
		return 0;
	case MESSAGE_END:
		writer_state->ended = true;
		return 0;
	default:
		break;
	}
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
}

/* Receive messages until END, or until the recorder is gone. */
static int take_messages(struct writer_state *writer_state, struct failure *why)
{
	uint64_t commit_at_ms = clock_now_ms() + COMMIT_INTERVAL_MS;

	while (!writer_state->ended) {
		struct pollfd poller = { .fd = writer_state->receiver.fd, .events = POLLIN };
		struct message message;
		int got;

		if (clock_now_ms() >= commit_at_ms ||
		    writer_state->samples >= writer_state->committed + COMMIT_SAMPLES) {
			writer_state->committed = writer_state->samples;
			output_set_commit(&writer_state->set);
			commit_at_ms = clock_now_ms() + COMMIT_INTERVAL_MS;
		}
		if (!message_is_ready(&writer_state->receiver) &&
		    poll(&poller, 1, COMMIT_INTERVAL_MS) == 0) {
			output_set_rotate_at(&writer_state->set, clock_now_ns() - SAMPLE_AGE_NS);
			continue;
		}
		got = message_receive(&writer_state->receiver, &message, why);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		if (handle(writer_state, &message, why) != 0)
			return -1;
	}
	return 0;
}

/* Always finish the files: if a recorder was killed while it sent, its messages end in the middle
 * of one, and the earlier ones count. Without END and without a sample nothing was recorded, and
 * old files stay unchanged. */
static void write_all(struct writer_state *writer_state)
{
	struct failure why;

	if (take_messages(writer_state, &why) != 0)
		writer_state->errnum = errnum_of(&why);
	output_set_finish(&writer_state->set, writer_state->ended && writer_state->samples == 0);
}

static bool any_has_folder(const struct writer_options *options)
{
	for (size_t i = 0; i < options->count; i++)
		if (options->files[i].folder_fd >= 0)
			return true;
	return false;
}

/* Call this while we still have privileges. */
static int start_file_helper(struct writer_state *writer_state,
			     const struct writer_options *options, struct failure *why)
{
	if (!any_has_folder(options))
		return 0;
	if (file_helper_start(options->files, options->count, options->rotate_ns > 0, options->keep,
			      &writer_state->file_helper, why) != 0)
		return -1;
	writer_state->set.shared.file_helper = &writer_state->file_helper;
	return 0;
}

static void begin_set(struct writer_state *writer_state, const struct writer_options *options)
{
	struct output_set *set = &writer_state->set;

	set->shared.functions = writer_state->functions;
	set->shared.options = options->format;
	set->shared.is_series = options->rotate_ns > 0;
	set->rotate_ns = options->rotate_ns;
	set->rotate_at_ns = options->format.start_ns + options->rotate_ns;
	set->count = options->count;
	for (size_t i = 0; i < options->count; i++)
		set->outputs[i] = (struct output){ .file = &options->files[i],
						   .shared = &set->shared,
						   .index = i };
	output_set_begin(set);
}

static int open_state(struct writer_state *writer_state, int socket_fd,
		      const struct writer_options *options, struct failure *why)
{
	if (message_receiver_init(&writer_state->receiver, socket_fd, why) != 0)
		return -1;
	writer_state->functions = format_functions_create();
	if (!writer_state->functions)
		return failure_set_errno(why, ENOMEM, 0, "start the writer");
	begin_set(writer_state, options);
	return 0;
}

static void report(struct writer_state *writer_state, int socket_fd)
{
	struct message_status status = { .errnum = writer_state->errnum,
					 .samples = writer_state->samples };
	struct message_queue queue;
	struct failure ignored;

	for (size_t i = 0; i < writer_state->set.count; i++) {
		status.outputs[i] = writer_state->set.outputs[i].result;
		if (status.outputs[i].errnum)
			status.errnum = status.outputs[i].errnum;
	}
	if (message_queue_init(&queue, socket_fd, &ignored) != 0)
		return;
	if (message_put_status(&queue, &status, &ignored) == 0)
		message_flush(&queue, &ignored);
	message_queue_deinit(&queue);
}

/* Encoding may wait, but must not delay a tick. */
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

/* Keep only the opened files, no folders: the file helper creates new files. */
static void give_up_privileges(int socket_fd, int file_helper_fd,
			       const struct writer_options *options)
{
	int fds[DAEMON_OUTPUTS_MAX + 2];
	size_t count = 0;

	for (size_t i = 0; i < options->count; i++)
		fds[count++] = options->files[i].fd;
	fds[count++] = socket_fd;
	fds[count++] = file_helper_fd;
	sandbox_close_others(fds, count);
	sandbox_keep_capabilities(NULL, 0);
}

_Noreturn void writer_run(int socket_fd, const struct writer_options *options,
			  struct writer_progress *progress)
{
	struct writer_state writer_state = { .set = { .progress = progress },
					     .file_helper = { .fd = -1 } };
	struct failure why;

	ignore_signals();
	prctl(PR_SET_NAME, "ljprof-writer", 0, 0, 0);
	if (start_file_helper(&writer_state, options, &why) != 0) {
		writer_state.errnum = errnum_of(&why);
	} else {
		give_up_privileges(socket_fd, writer_state.file_helper.fd, options);
		stand_back();
		if (open_state(&writer_state, socket_fd, options, &why) == 0)
			write_all(&writer_state);
		else
			writer_state.errnum = errnum_of(&why);
	}
	for (size_t i = 0; i < writer_state.set.count; i++)
		output_deinit(&writer_state.set.outputs[i]);
	/* Files are named and removed before the report says that they are. */
	if (writer_state.set.shared.file_helper)
		file_helper_stop(&writer_state.file_helper);
	/* If memory is out, the report needs some. */
	format_functions_destroy(writer_state.functions);
	message_receiver_deinit(&writer_state.receiver);
	report(&writer_state, socket_fd);
	_exit(writer_state.errnum ? 1 : 0);
}
