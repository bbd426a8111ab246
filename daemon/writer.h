/* SPDX-License-Identifier: MIT */
/* Private to daemon: the writer process. */
#ifndef DAEMON_WRITER_H
#define DAEMON_WRITER_H

#include "daemon/message.h"

/** How a writer ended. */
enum writer_fate {
	WRITER_REPORTED, /**< With its last report. */
	WRITER_STUCK,	 /**< It took or said nothing for 10 s, and was killed. */
	WRITER_DIED,	 /**< Without a word. */
};

/** A running writer process, as the recorder sees it. */
struct writer {
	pid_t pid;
	enum writer_fate fate; /**< Once it was finished or collected. */
	int wait_status;       /**< As of waitpid(). */
	int fd;
	struct message_queue queue;
	struct message_receiver receiver;
};

/**
 * Fork the writer. It gives up all capabilities, ignores the terminal's signals and ends when its
 * socket closes, so that the file is whole also when the recorder dies.
 * @param output_fd Taken over.
 */
int writer_start(int output_fd, const struct format_writer_ops *format,
		 const struct format_options *options, struct writer *ret_writer,
		 struct failure *why);

/** Whether it has ended, or is about to: its last report is there, or its end of the socket is
 * gone. It does either only where it failed. */
bool writer_has_ended(const struct writer *writer);

/**
 * Finish the file and reap the process, within 10 s of the last sign of life from it.
 * @param ret_status What the writer reported; errnum is EPIPE where it did not.
 */
void writer_finish(struct writer *writer, struct message_status *ret_status);

/** Why sending failed: the writer's own report if there is one. Reaps the process. */
void writer_collect(struct writer *writer, struct message_status *ret_status);

#endif
