/* SPDX-License-Identifier: MIT */
/* Private to daemon: how does the writer process run? */
#ifndef DAEMON_WRITER_WRITER_MAIN_H
#define DAEMON_WRITER_WRITER_MAIN_H

#include "daemon/writer/writer.h"

/**
 * Run the writer in a process that was just forked.
 * @param progress Shared with the recorder.
 */
_Noreturn void writer_run(int socket_fd, const struct writer_options *options,
			  struct writer_progress *progress);

#endif
