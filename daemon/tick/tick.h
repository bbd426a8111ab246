/* SPDX-License-Identifier: MIT */
/* Private to daemon: what happens at a tick of the recording's clock? */
#ifndef DAEMON_TICK_TICK_H
#define DAEMON_TICK_TICK_H

#include "daemon/outcome/outcomes.h"

/** For struct recorder. */
extern const struct recorder_sampling tick_sampling;

/* ---- Stops (stop_tick.c) ---------------------------------------------------------------- */

/**
 * Sample each thread of interest once.
 * @return false if the recording ends.
 */
bool recorder_tick(struct recorder *recorder);

/**
 * List a process's threads again if they may have changed. Listing uses a bounded share of our
 * time.
 * @return Whether the list is current.
 */
bool recorder_list_threads(struct recorder_target *of);

/**
 * Sample the threads whose pending stops have completed.
 * @return false if the recording ends.
 */
bool recorder_take_pending(struct recorder *recorder);

/** Find a VM in a process. If necessary, stop running threads to read their stacks. */
int recorder_find_vm(struct recorder *recorder, struct recorder_target *of, struct failure *why);

/** Report the outcome of threads whose stops are still pending after the last tick. */
void recorder_end_ticks(struct recorder *recorder);

/**
 * Decode the recorder's image and pass on the sample.
 * @param sleep NULL: the thread ran.
 * @param time_ns Time of the image.
 * @return false if the recording ends.
 */
bool sampled_decode(struct recorder_target *of, struct attach_thread *thread,
		    struct sampled_thread *data, const struct attach_sleep *sleep,
		    uint64_t time_ns);

/* ---- Kernel samples (bpf_tick.c) -------------------------------------------------------- */

/** When the next drain after @p now_ns is due. */
uint64_t bpf_tick_next_ns(const struct recorder *recorder, uint64_t now_ns);

/**
 * Receive the available copies, which may give up processes.
 * @return false if the recording ends.
 */
bool bpf_tick_take(struct recorder *recorder);

/**
 * Receive the available copies, and account for the last @p ticks ticks.
 * @return false if the recording ends.
 */
bool bpf_tick_drain(struct recorder *recorder, uint32_t ticks);

/** Note the outcome of a sample: from a stop if @p copies is stopped, else from a copy. */
void bpf_tick_note(struct sampled_copies *copies, enum daemon_outcome outcome);

/** The thread's stops end: note whether they gave more full chains than copies. */
void bpf_tick_note_stops(struct sampled_copies *copies);

/** The thread has ended, or its process is given up. */
void bpf_tick_end_thread(struct recorder_target *of, struct sampled_thread *data);

/** Stop copying all threads of a process, because it runs another program. */
void bpf_tick_end_process(struct recorder_target *of);

/** Stop copying all threads. */
void bpf_tick_end_all(struct recorder *recorder);

/* ---- Ticks without copies (rest.c) ------------------------------------------------------ */

/** Begin to account for the thread's rest. */
void rest_begin(struct attach_thread *thread, struct sampled_copies *copies);

/** Report the ticks of copies.rest: the thread waited for a processor, or slept. For a thread
 * without copies, do this once a second, and report a wait when it ends. */
void rest_report(struct recorder_target *of, struct attach_thread *thread,
		 struct sampled_thread *data, bool has_copies);

/**
 * The thread's copies end: report all its ticks.
 * @param thread NULL: it has ended.
 */
void rest_end(struct recorder_target *of, struct attach_thread *thread,
	      struct sampled_thread *data);

/* ---- Waits (waits.c) -------------------------------------------------------------------- */

/**
 * Report the sample of a thread that is still in the same wait, for its pending ticks.
 * @return Whether it is, and its chain is known.
 */
bool wait_goes_on(struct recorder_target *of, const struct attach_thread *thread,
		  struct sampled_thread *data);

/**
 * Keep a wait for later ticks. If its chain does not reach the thread's first function, decode it
 * again first, because we may have learned more.
 * @param sample Copied. If memory is out, each tick decodes the wait again.
 * @param outcome Outcome of decoding @p sample.
 */
void wait_keep(const struct recorder_target *of, struct sampled_thread *data,
	       const struct attach_sleep *sleep, const struct format_sample *sample,
	       enum daemon_outcome outcome);

/** Free the wait. */
void wait_free(struct sampled_thread *data);

#endif
