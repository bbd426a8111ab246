/* SPDX-License-Identifier: MIT */
/* Private to daemon: what the sampler keeps with a thread, and how it accounts for its ticks. */
#ifndef DAEMON_OUTCOME_OUTCOMES_H
#define DAEMON_OUTCOME_OUTCOMES_H

#include "daemon/recorder/recorder.h"

/** The chain of a thread that waits: it is that of each tick as long as the wait lasts. */
struct sampled_wait {
	struct attach_sleep sleep;
	uint32_t announcement; /**< Of the target: ids of functions are of this one. */
	uint64_t generation;   /**< Of its maps. */
	uint64_t code_ns;      /**< As there: it is later once code was looked for. */
	unsigned looks;	       /**< Without a chain to the thread's first function. */
	uint64_t until_ns;     /**< The chain is that of each tick until then; 0: not known. */
	struct format_sample sample;
	struct format_frame *frames; /**< Of the sample. */
	uint32_t size;
	struct format_coroutine coroutines[FORMAT_COROUTINES_MAX];
};

/** Back-off: doubles after each group of looks without a result. */
struct sampled_rest {
	uint64_t until_ns;
	unsigned looks;
};

/** Where the kernel copies a thread, in place of stops. */
struct sampled_copies {
	struct luastate_bpf_plan *plan; /**< NULL: it is not copied. */
	struct recorder_target *of;
	struct attach_thread *thread;
	uint64_t skipped;   /**< As far as told. */
	uint64_t lost;	    /**< Ticks for which copies have stood. */
	uint64_t lost_seen; /**< As far as they are accounted for as no rest. */
	int64_t taken;	    /**< Copies since the last account. */
	uint32_t begun;	    /**< Ticks from before it was found, for its first copy. */
	int64_t rest;	    /**< Ticks of the clock that are not told yet; may be early ones. */
	struct attach_schedule schedule; /**< At the last look; runs 0: not known. */
	int64_t deferred;		 /**< Of the rest: from before that look. */
	int64_t waited_ns;		 /**< For a processor, of which ticks are not told yet. */
	uint64_t look_ns;		 /**< Not before, where it has no copies. */
	bool is_truncated;		 /**< Chains lacked what there was no room for. */
	bool is_gone;	   /**< The kernel knows it no more, but has it in its list. */
	bool is_stopped;   /**< In place of copies, as these would lack something. */
	bool is_refused;   /**< The kernel does not copy it, and it may not be stopped. */
	uint64_t retry_ns; /**< Until then, for either. */
	unsigned tries;
	/** The last samples, copies or stops, and those of them whose chains are not whole. */
	unsigned samples, inconsistent;
	bool is_inconsistent;	       /**< The last one. */
	unsigned inconsistent_copies;  /**< Of INCONSISTENT_OF copies, so that it is stopped; 0: not
					  for that. */
	bool is_inconsistent_by_stops; /**< They did not show more than copies. */
};

/** One thread; freed with it. */
struct sampled_thread {
	struct luastate_prediction prediction;
	bool runs_lua;
	/** Ticks whose outcome is not reported yet, as that of a thread that has not stood yet. */
	uint32_t pending;
	/** Ticks that the next sample of their kind stands for: the thread ran, and slept before it
	 * was stopped; or slept, and ran before its stack was read. */
	uint32_t deferred_run, deferred_sleep;
	/** Ticks at which it waited for a processor, not told yet; the processor time that it had
	 * used at its last sample, 0 unknown; and what of that has had no sample. */
	uint32_t unscheduled;
	uint64_t ran_ns;
	int64_t unsampled_ns;
	/** From looks at it while it has never run Lua: when it runs, and when it waits. */
	struct sampled_rest run_rest, wait_rest;
	uint64_t stack_ns; /**< Not before: for a VM on its stack. */
	uint64_t stack_interval_ns;
	uint64_t stack_G;	   /**< Of the VM that was last found there. */
	struct sampled_wait *wait; /**< NULL: none yet. */
	struct sampled_copies copies;
	enum daemon_reason stop_reason; /**< Of its stops, with copies of others. */
	bool is_stop_listed;
	size_t stop_entry; /**< One more than its index in the stats' list; 0: there was no room. */
	char name[MESSAGE_THREAD_NAME];
	uint64_t name_ns; /**< When the name was read; 0: it was not. */
};

/** @return NULL where there is no memory. */
struct sampled_thread *sampled_of(struct attach_thread *thread);

/** Tell the outcome of all ticks of a thread that are owed. @return how many these were. */
uint32_t sampled_tell(struct recorder_target *of, struct sampled_thread *data,
		      enum daemon_outcome outcome);

/** At the ticks that it is owed the thread waited for a processor. They are counted later, as a
 * later sample may stand for some of them. */
void sampled_hold(struct recorder_target *of, struct sampled_thread *data);

/**
 * Weigh the next sample by the processor time that the thread has used since the last one: at ticks
 * that we missed or left out it may have run or waited. While ticks and time agree, but for chance,
 * each tick counts once.
 * @param ran_ns Processor time that it has used in all; 0: not known.
 * @return Whether there is such a sample; else its ticks are held.
 */
bool sampled_weigh(struct recorder_target *of, struct sampled_thread *data, uint64_t ran_ns);

/** Forget the processor time so far: later samples do not stand for it. */
void sampled_forget_time(struct recorder_target *of, struct sampled_thread *data);

/** The thread's name; read again once in a while, as many threads get theirs after they began. */
const char *sampled_name(const struct recorder_target *of, const struct attach_thread *thread,
			 struct sampled_thread *data, uint64_t now_ns);

/** Have the next sample of their kind stand for the ticks that are owed; no more of them than are
 *  near in time. */
void sampled_carry(struct recorder_target *of, struct sampled_thread *data, bool is_asleep);

/** The thread, or the recording, has ended: tell the outcome of all ticks that are left. */
void sampled_end(struct recorder_target *of, struct sampled_thread *data,
		 enum daemon_outcome outcome);

/** Hand over a sample, which stands for @p sample->weight ticks, and count it. @return false where
 *  the recording ends. */
bool sampled_put(struct recorder_target *of, const struct format_sample *sample);

/* ---- Threads that do not stand yet (settle.c) ------------------------------------------- */

/** Wait until no thread of the process is under an interrupt of ours. @return whether none is. */
bool recorder_settle(struct recorder_target *of);

/** The same for all processes: before anything that may take longer than a sample. */
void recorder_settle_all(struct recorder *recorder);

#endif
