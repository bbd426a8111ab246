/* SPDX-License-Identifier: MIT */
/* Private to daemon: the writer process. */
#ifndef DAEMON_WRITER_WRITER_H
#define DAEMON_WRITER_WRITER_H

#include <signal.h>
#include <stdatomic.h>

#include "daemon/files/output_files.h"
#include "daemon/writer/message.h"

/** How a writer ended. */
enum writer_fate {
	WRITER_REPORTED, /**< With its last report. */
	WRITER_STUCK,	 /**< It took or said nothing for 10 s, nor worked, and was killed. */
	WRITER_DIED,	 /**< Without a report. */
};

/** What the writer shows while it works, in memory that both see: nothing there is relied on. */
struct writer_progress {
	_Atomic uint64_t largest_bytes; /**< Written of the largest output, all its files. */
	atomic_bool failed; /**< An output has; the others get what comes until the END. */
};

/** What to write where. */
struct writer_options {
	const struct output_file *files;
	size_t count;
	struct format_options format; /**< Compression apart, which is each file's own. */
	/** Begin new files after this time, by the times of samples; the old ones are complete. 0:
	 * no series. A time without samples has no files. */
	uint64_t rotate_ns;
	unsigned keep; /**< Files of each series, the newest; 0: all. */
};

/** A running writer process, as the recorder sees it. */
struct writer {
	pid_t pid;
	enum writer_fate fate; /**< Once it was finished or collected. */
	int wait_status;       /**< As of waitpid(). */
	int fd;
	struct writer_progress *progress;
	struct message_queue queue;
	struct message_receiver receiver;
};

/**
 * Fork the writer. It gives up all capabilities, ignores the terminal's signals and ends when its
 * socket closes, so that the files are whole also when the recorder dies. Closed without an END
 * message and before the first sample, it leaves files that there were before as they are.
 * @param options The files stay the caller's, who closes them.
 */
int writer_start(const struct writer_options *options, struct writer *ret_writer,
		 struct failure *why);

/** Whether the recording is to end: an output failed, or the writer itself, which then has sent its
 * last report or is gone. */
bool writer_has_failed(const struct writer *writer);

/** Bytes that were written of the largest output so far; a whole file counts when it is complete.
 */
uint64_t writer_bytes(const struct writer *writer);

/**
 * Send what is queued, until no more than @p rest bytes of it wait. A writer that is at work, on a
 * large file, takes them later.
 * @param until_ns By clock_now_ns(): from then on the rest stays queued.
 * @param stop Where this is set likewise, or NULL.
 * @return 0, or -1: FAILURE_GONE (EPIPE) when the writer is, FAILURE_TIMEOUT when for 10 s it
 *         neither takes anything nor works, or works for 10 minutes and takes nothing,
 *         FAILURE_SYSTEM.
 */
int writer_send(struct writer *writer, size_t rest, uint64_t until_ns,
		const volatile sig_atomic_t *stop, struct failure *why);

/**
 * Finish the file and reap the process, within 10 s of the last sign of life from it, and 10
 * minutes of the last byte that it took or said.
 * @param ret_status What the writer reported; errnum is EPIPE where it did not.
 */
void writer_finish(struct writer *writer, struct message_status *ret_status);

/** Why sending failed: the writer's own report if there is one. Reaps the process. */
void writer_collect(struct writer *writer, struct message_status *ret_status);

#endif
