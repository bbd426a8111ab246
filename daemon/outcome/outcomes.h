/* SPDX-License-Identifier: MIT */
/* Private to daemon: what does the sampler keep for a thread, and which outcome has each of its
 * ticks? */
#ifndef DAEMON_OUTCOME_OUTCOMES_H
#define DAEMON_OUTCOME_OUTCOMES_H

#include "daemon/recorder/recorder.h"

/** The chain of a waiting thread, valid for each tick until the wait ends. */
struct sampled_wait {
	struct attach_sleep sleep;
	/** Announcement of the target that the ids of functions belong to. */
	uint32_t announcement;
	uint64_t generation; /**< Generation of the target's maps. */
	uint64_t code_ns;    /**< As in the target: advances after each search for code. */
	/** Decodings whose chain did not reach the thread's first function. */
	unsigned decodes;
	uint64_t until_ns; /**< Until then the chain is valid for each tick; 0: not known. */
	struct format_sample sample;
	struct format_frame *frames; /**< Frames of the sample. */
	uint32_t size;
	struct format_coroutine coroutines[FORMAT_COROUTINES_MAX];
};

/** Back-off: the interval doubles after each group of polls without a result. */
struct sampled_rest {
	uint64_t until_ns;
	unsigned polls;
};

/** State of a thread that the kernel copies. */
struct sampled_copies {
	struct luastate_bpf_plan *plan; /**< NULL: the kernel does not copy it. */
	struct recorder_target *of;
	struct attach_thread *thread;
	uint64_t skipped;   /**< Skipped ticks that are reported. */
	uint64_t lost;	    /**< Lost ticks that a copy has represented. */
	uint64_t lost_seen; /**< Lost ticks that are excluded from the rest. */
	int64_t taken;	    /**< Copies since the last account. */
	/** Ticks before the thread was found; its first copy represents them. */
	uint32_t begun;
	/** Ticks of the clock that are not reported yet; negative if copies came early. */
	int64_t rest;
	struct attach_schedule schedule; /**< At the last poll; runs 0: not known. */
	int64_t deferred;		 /**< Part of the rest from before the last poll. */
	/** Wait for a processor that is not reported as ticks yet. */
	int64_t waited_ns;
	uint64_t poll_ns;  /**< Earliest next poll while it has no copies. */
	bool is_truncated; /**< Chains lacked memory that a copy had no room for. */
	bool is_gone;	   /**< The kernel still lists it, but cannot find it. */
	bool is_stopped;   /**< It is stopped, because copies would lack something. */
	bool is_refused;   /**< The kernel does not copy it, and it may not be stopped. */
	uint64_t retry_ns; /**< End of is_stopped or is_refused. */
	unsigned tries;
	/** The last samples (copies or stops), and those with a partial chain. */
	unsigned samples, inconsistent;
	bool is_inconsistent; /**< The last sample has a partial chain. */
	/** Partial chains of INCONSISTENT_OF copies, which is why the thread is stopped; 0: it is
	 * not for this reason. */
	unsigned inconsistent_copies;
	bool is_inconsistent_by_stops; /**< Stops did not give more full chains than copies. */
};

/** One thread; freed with it. */
struct sampled_thread {
	struct luastate_prediction prediction;
	struct stop_plan *stop_plan; /**< NULL: never stopped. */
	bool runs_lua;
	/** Ticks whose outcome is not reported yet; for example, the thread has not stopped yet. */
	uint32_t pending;
	/** Deferred ticks, which the next sample of their kind represents: the thread ran at the
	 * tick, and slept before the stop; or it slept, and ran before its stack was read. */
	uint32_t deferred_run, deferred_sleep;
	/** Ticks at which the thread waited for a processor, not reported yet. Then the thread's
	 * processor time at its last sample (0: unknown), and the part of that time without a
	 * sample. */
	uint32_t unscheduled;
	uint64_t ran_ns;
	int64_t unsampled_ns;
	/** Back-off while the thread has never run Lua: for polls when it runs, and when it
	 * waits. */
	struct sampled_rest run_rest, wait_rest;
	uint64_t stack_ns; /**< Earliest next search for a VM on its stack. */
	uint64_t stack_interval_ns;
	uint64_t stack_G;	   /**< VM that was last found there. */
	struct sampled_wait *wait; /**< NULL: none yet. */
	struct sampled_copies copies;
	enum daemon_reason stop_reason; /**< Why it is stopped while others are copied. */
	bool is_stop_listed;
	size_t stop_entry; /**< Its index in the stats' list plus 1; 0: the list was full. */
	char name[MESSAGE_THREAD_NAME];
	uint64_t name_ns; /**< When the name was read; 0: it was not. */
};

/** @return NULL if memory is out. */
struct sampled_thread *sampled_of(struct attach_thread *thread);

/**
 * Report an outcome for all pending ticks of a thread.
 * @return How many ticks were reported.
 */
uint32_t sampled_report(struct recorder_target *of, struct sampled_thread *data,
			enum daemon_outcome outcome);

/** Note that the thread waited for a processor at its pending ticks. They are reported later,
 * because a later sample may represent some of them. */
void sampled_note_unscheduled(struct recorder_target *of, struct sampled_thread *data);

/**
 * Weight the next sample by the thread's processor time since the last sample: at ticks that we
 * missed or left out, the thread may have run or waited. While ticks and time agree within
 * statistical error, each tick counts once.
 * @param ran_ns Total processor time of the thread; 0: not known.
 * @return Whether there is a sample; if not, its ticks wait for a later one.
 */
bool sampled_weigh(struct recorder_target *of, struct sampled_thread *data, uint64_t ran_ns);

/** Forget the processor time so far: later samples do not represent it. */
void sampled_forget_time(struct recorder_target *of, struct sampled_thread *data);

/** The thread's name, read again once a second because many threads set it after their start. */
const char *sampled_name(const struct recorder_target *of, const struct attach_thread *thread,
			 struct sampled_thread *data, uint64_t now_ns);

/** Defer the pending ticks to the next sample of their kind, but only a few that are close in
 * time. */
void sampled_defer(struct recorder_target *of, struct sampled_thread *data, bool is_asleep);

/** The thread or the recording has ended: report the outcome of all remaining ticks. */
void sampled_end(struct recorder_target *of, struct sampled_thread *data,
		 enum daemon_outcome outcome);

/**
 * Pass on and count a sample, which represents @p sample->weight ticks.
 * @return false if the recording ends.
 */
bool sampled_put(struct recorder_target *of, const struct format_sample *sample);

#endif
