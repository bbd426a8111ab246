/* SPDX-License-Identifier: MIT */
/* Private to daemon: what a sampler tells a watch besides functions and samples. */
#ifndef DAEMON_RECORDER_LIVE_CHANNEL_H
#define DAEMON_RECORDER_LIVE_CHANNEL_H

#include "daemon/recorder/recorder.h"
#include "daemon/live.h"

/*
 * The queue to a watch is bounded: the sampler never waits. Samples that find it full are dropped;
 * so are functions, which are announced anew, under new ids, once there is room. The watch asks for
 * the same with CHANNEL_RENEW, when it has forgotten functions. It says nothing else; closing the
 * socket ends the sampler.
 */

enum {
	CHANNEL_INTERVAL_NS = 100 * 1000 * 1000,
	/* The VMs' state: a few reads of each. */
	CHANNEL_VMS_INTERVAL_NS = 500 * 1000 * 1000,
	/* Some seconds of usual chains at the usual rate; bounds what a stuck screen costs. The
	 * message that goes beyond it may be as long as any. */
	CHANNEL_QUEUE_MAX = 512 * 1024,
	/* VMs that are reported: more than a header shows. */
	CHANNEL_VMS_MAX = 64,
	CHANNEL_TEXT_MAX = 512,
	CHANNEL_RENEW = 'r',
	/* How long the last words may take. */
	CHANNEL_LAST_MS = 1000,
};

struct live_numbers {
	uint64_t elapsed_ns, samples, dropped, ticks, late_ticks, missed_ticks, cpu_ns;
	uint64_t states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t stopped_p50_ns, stopped_p99_ns, stopped_max_ns, unlisted_processes;
	uint64_t copied_p99_ns;
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	uint32_t rate_hz, vm_count; /* VMs beyond this number are no more */
	uint32_t capture, unused;
};

struct live_process {
	uint64_t index, start_ns;
	struct daemon_process process;
};

struct live_vm {
	uint64_t index;
	struct daemon_vm vm;
};

/** A notice (end 0), or how the sampling ended. */
struct live_text {
	int32_t end;
	char text[CHANNEL_TEXT_MAX];
};

struct live_channel;

/** Begin to send to options->channel_fd. @return 0, or -1 with the end and its text set. */
int live_channel_start(struct recorder *recorder);

/** Tell what is due, hear what is asked. @return false where the watch has gone. */
bool live_channel_update(struct recorder *recorder, uint64_t now_ns);

/** Tell how it ended, and release the channel. */
void live_channel_finish(struct recorder *recorder);

/** Whether the watch is behind. */
bool live_channel_is_full(const struct recorder *recorder);

/** A function was not told. */
void live_channel_note_lost(struct recorder *recorder);

/** Changes of a process. */
void live_channel_note_exec(struct recorder *recorder, const struct recorder_target *of);
void live_channel_note_end(struct recorder *recorder, const struct recorder_target *of);
void live_channel_note_found(struct recorder *recorder, const struct recorder_target *of);

/** Something for people that does not end the sampling; dropped where the watch is behind. */
void live_channel_notice(struct recorder *recorder, const char *text);

#endif
