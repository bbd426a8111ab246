/* SPDX-License-Identifier: MIT */
/* Private to daemon: a recording. */
#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

#include "daemon/clock.h"
#include "daemon/target.h"
#include "daemon/writer.h"

struct recorder {
	const struct daemon_options *options;
	struct daemon_stats *stats;
	enum daemon_end end;
	char *text; /* the caller's message buffer */
	size_t text_len;

	struct attach_process *process; /* owned by target once that exists */
	struct daemon_target *target;
	struct attach_image *image;
	int output_fd;
	bool created; /* the output file did not exist before */
	bool writing; /* the writer runs */
	struct writer writer;

	uint64_t begin_ns, flush_ns, refresh_ns, search_ns, image_number;
};

/** Sample each thread of interest once. @return false where the recording ends. */
bool recorder_tick(struct recorder *recorder);

/** Find a VM, stopping running threads for a look at their stacks where that is needed. */
int recorder_find_vm(struct recorder *recorder, struct failure *why);

/** Have maps and threads read anew before long. */
void recorder_refresh_soon(struct recorder *recorder, uint64_t now_ns);

/** Wait until no thread is under an interrupt of ours. */
void recorder_settle(struct recorder *recorder);

/** Processor time of this process so far. */
uint64_t recorder_cpu_ns(void);

#endif
