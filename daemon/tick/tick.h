/* SPDX-License-Identifier: MIT */
/* Private to daemon: what happens at a tick of the recording's clock. */
#ifndef DAEMON_TICK_TICK_H
#define DAEMON_TICK_TICK_H

#include "daemon/outcome/outcomes.h"

/** For struct recorder. */
extern const struct recorder_sampling tick_sampling;

/* ---- Stops (stop_tick.c) ---------------------------------------------------------------- */

/** Sample each thread of interest once. @return false where the recording ends. */
bool recorder_tick(struct recorder *recorder);

/** List a process's threads anew where there seem to be others. @return Whether the list is that of
 *  now: listing takes a part of our time at most. */
bool recorder_list_threads(struct recorder_target *of);

/** Sample the threads that stand by now though they did not when they were asked to. @return false
 *  where the recording ends. */
bool recorder_take_pending(struct recorder *recorder);

/** Find a VM in a process, stopping running threads for a look at their stacks where that is
 *  needed. */
int recorder_find_vm(struct recorder *recorder, struct recorder_target *of, struct failure *why);

/** The last tick is over: tell the outcome of threads that have not stood until now. */
void recorder_end_ticks(struct recorder *recorder);

/**
 * Turn the recorder's image into a sample and hand it over.
 * @param sleep NULL: the thread ran.
 * @param time_ns When the image was taken.
 * @return false where the recording ends.
 */
bool sampled_decode(struct recorder_target *of, struct attach_thread *thread,
		    struct sampled_thread *data, const struct attach_sleep *sleep,
		    uint64_t time_ns);

/* ---- Copies by the kernel (bpf_tick.c) -------------------------------------------------- */

/** When copies are to be taken after @p now_ns. */
uint64_t bpf_tick_next_ns(const struct recorder *recorder, uint64_t now_ns);

/** Take the copies that are there, which may give up processes. @return false where the recording
 *  ends. */
bool bpf_tick_take(struct recorder *recorder);

/** The same, and account for the last @p ticks ticks. @return false where the recording ends. */
bool bpf_tick_drain(struct recorder *recorder, uint32_t ticks);

/** Note the outcome of a sample, by a copy or, where @p copies is stopped, by a stop. */
void bpf_tick_note(struct sampled_copies *copies, enum daemon_outcome outcome);

/** The thread's stops end: note whether they showed more than copies had. */
void bpf_tick_note_stops(struct sampled_copies *copies);

/** The thread has ended, or its process is given up. */
void bpf_tick_end_thread(struct recorder_target *of, struct sampled_thread *data);

/** No thread of the process is copied any more: its program is another one. */
void bpf_tick_end_process(struct recorder_target *of);

/** No thread at all is. */
void bpf_tick_end_all(struct recorder *recorder);

/* ---- Ticks without copies (rest.c) ------------------------------------------------------ */

/** The thread's copies begin. */
void rest_begin(struct attach_thread *thread, struct sampled_copies *copies);

/** Tell the ticks of copies.rest: the thread waited for a processor, or slept. A thread
 *  without copies has them reported once a second, and a wait when it ends. */
void rest_tell(struct recorder_target *of, struct attach_thread *thread,
	       struct sampled_thread *data, bool has_copies);

/** The thread's copies end: tell all of them. @param thread NULL: it is gone. */
void rest_end(struct recorder_target *of, struct attach_thread *thread,
	      struct sampled_thread *data);

/* ---- Waits (waits.c) -------------------------------------------------------------------- */

/** The sample of a thread that waits still, for the ticks that are owed. @return whether it does,
 *  and its chain is known. */
bool wait_goes_on(struct recorder_target *of, const struct attach_thread *thread,
		  struct sampled_thread *data);

/** Keep a wait for the ticks to come. One whose chain does not come to the thread's first function
 *  is looked at again first, as what was learned may help.
 *  @param sample Copied. Without memory for that each tick decodes the wait anew.
 *  @param outcome Of the decoding of @p sample. */
void wait_keep(const struct recorder_target *of, struct sampled_thread *data,
	       const struct attach_sleep *sleep, const struct format_sample *sample,
	       enum daemon_outcome outcome);

/** Give the wait back. */
void wait_free(struct sampled_thread *data);

#endif
