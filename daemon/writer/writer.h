/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does the recorder use the writer process? */
#ifndef DAEMON_WRITER_WRITER_H
#define DAEMON_WRITER_WRITER_H

#include <signal.h>
#include <stdatomic.h>

#include "daemon/files/output_files.h"
#include "daemon/writer/message.h"

/** How a writer ended. */
enum writer_fate {
	WRITER_REPORTED, /**< With its last report. */
	WRITER_STUCK,	 /**< For 10 s it did not receive, send or work, and was killed. */
	WRITER_DIED,	 /**< Without a report. */
};

/** Progress of a working writer, in shared memory. The recorder does not trust it. */
struct writer_progress {
	_Atomic uint64_t largest_bytes; /**< Bytes of the largest output, in all its files. */
	atomic_bool failed;		/**< An output has failed; the others continue until END. */
};

/** What to write, and where. */
struct writer_options {
	const struct output_file *files;
	size_t count;
	struct format_options format; /**< Without compression, which each file sets itself. */
	/** Begin new files after this time, by the times of samples; the old files are then
	 * complete. 0: no series. A time without samples gets no files. */
	uint64_t rotate_ns;
	unsigned keep; /**< How many files of each series to keep, newest first; 0: all. */
};

/** A running writer process, as the recorder sees it. */
struct writer {
	pid_t pid;
	enum writer_fate fate; /**< Set when it was finished or collected. */
	int wait_status;       /**< As from waitpid(). */
	int fd;
	struct writer_progress *progress;
	struct message_queue queue;
	struct message_receiver receiver;
};

/**
 * Fork the writer. It gives up all capabilities, ignores the terminal's signals and ends when its
 * socket closes, so the files are complete even if the recorder dies. If the socket closes without
 * an END message and before the first sample, old files stay unchanged.
 * @param options The caller keeps and closes the files.
 */
int writer_start(const struct writer_options *options, struct writer *ret_writer,
		 struct failure *why);

/** Whether the recording must end, because an output failed or the writer itself did; it then has
 * sent its last report, or is gone. */
bool writer_has_failed(const struct writer *writer);

/** Bytes of the largest output so far; a buffered file counts when it is complete. */
uint64_t writer_bytes(const struct writer *writer);

/**
 * Send what is queued until at most @p rest bytes are left. A writer that is busy with a large file
 * receives them later.
 * @param until_ns By clock_now_ns(): from then on the rest stays queued.
 * @param stop Has the same effect when set; may be NULL.
 * @return 0, or -1: FAILURE_GONE (EPIPE) if the writer has ended. FAILURE_TIMEOUT if it neither
 * receives nor works for 10 s, or works for 10 minutes and receives nothing. FAILURE_SYSTEM.
 */
int writer_send(struct writer *writer, size_t rest, uint64_t until_ns,
		const volatile sig_atomic_t *stop, struct failure *why);

/**
 * Finish the file and reap the process, within 10 s of its last sign of life, and within 10 minutes
 * of the last byte that it received or sent.
 * @param ret_status The writer's report; errnum is EPIPE if there is none.
 */
void writer_finish(struct writer *writer, struct message_status *ret_status);

/** Get the reason why sending failed, from the writer's report if there is one. Reaps the
 * process. */
void writer_collect(struct writer *writer, struct message_status *ret_status);

#endif
