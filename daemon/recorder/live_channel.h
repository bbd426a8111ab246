/* SPDX-License-Identifier: MIT */
/* Private to daemon: what does a sampler send to a live session besides functions and samples? */
#ifndef DAEMON_RECORDER_LIVE_CHANNEL_H
#define DAEMON_RECORDER_LIVE_CHANNEL_H

#include "daemon/recorder/recorder.h"
#include "daemon/live.h"

/* The queue to a live session is bounded, and the sampler never waits. If the queue is full,
 * samples and functions are dropped. Functions are announced again under new ids when there is
 * room. A live session that has forgotten functions requests the same with CHANNEL_RENEW, its only
 * message. When it closes the socket, the sampler ends. */

enum {
	CHANNEL_INTERVAL_NS = 100 * 1000 * 1000,
	/* State of the VMs: a few reads for each VM. */
	CHANNEL_VMS_INTERVAL_NS = 500 * 1000 * 1000,
	/* Some seconds of usual chains at the usual rate; limits what a stuck screen costs. The
	 * message that crosses this limit may have any length. */
	CHANNEL_QUEUE_MAX = 512 * 1024,
	/* VMs that are reported: more than a header shows. */
	CHANNEL_VMS_MAX = 64,
	CHANNEL_TEXT_MAX = 512,
	CHANNEL_RENEW = 'r',
	/* How long sending the last messages may take. */
	CHANNEL_LAST_MS = 1000,
};

struct live_numbers {
	uint64_t elapsed_ns, samples, dropped, ticks, late_ticks, missed_ticks, cpu_ns;
	uint64_t states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t stopped_p50_ns, stopped_p99_ns, stopped_max_ns, unlisted_processes;
	uint64_t copied_p99_ns;
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	uint32_t rate_hz, vm_count; /* VMs with an index of vm_count or more do not exist now */
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

/**
 * Begin to send to options->channel_fd.
 * @return 0, or -1 with the end and its text set.
 */
int live_channel_start(struct recorder *recorder);

/**
 * Send what is due, and receive requests.
 * @return false if the live session has ended.
 */
bool live_channel_update(struct recorder *recorder, uint64_t now_ns);

/** Send how the sampling ended, and release the channel. */
void live_channel_finish(struct recorder *recorder);

/** Whether the queue is full. */
bool live_channel_is_full(const struct recorder *recorder);

/** Note that a function was not announced. */
void live_channel_note_lost(struct recorder *recorder);

/** Report changes of a process. */
void live_channel_note_exec(struct recorder *recorder, const struct recorder_target *of);
void live_channel_note_end(struct recorder *recorder, const struct recorder_target *of);
void live_channel_note_found(struct recorder *recorder, const struct recorder_target *of);

/** Send a message for people that does not end the sampling; dropped if the queue is full. */
void live_channel_notice(struct recorder *recorder, const char *text);

#endif
