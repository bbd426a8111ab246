/* SPDX-License-Identifier: MIT */
/* Which numbers does a recording keep? */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/sample.h"

/** The outcome of a thread's tick: each tick has exactly one. */
enum daemon_outcome {
	DAEMON_FULL = 0,     /**< A chain from the leaf to the thread's first function. */
	DAEMON_INCONSISTENT, /**< Partial: the VM was in an inconsistent state. */
	DAEMON_TRUNCATED,    /**< Partial: a stack is longer than its copy. */
	DAEMON_UNWOUND,	     /**< Partial: native code without unwind information. */
	DAEMON_NO_VM,	     /**< No VM frame on the native stack. */
	DAEMON_IDLE,	     /**< Blocked: not interrupted, and not in the profile. */
	DAEMON_ASLEEP,	     /**< Blocked: its stack is read without a stop. */
	DAEMON_UNSCHEDULED,  /**< Ready to run, but without a processor. */
	/** Skipped: it has never run Lua, and is polled only from time to time. */
	DAEMON_RESTED,
	DAEMON_EXITED, /**< The thread ended. */
	DAEMON_BUSY,   /**< Stopped by another tracer. */
	DAEMON_FAILED, /**< Could not be stopped or read. */
	DAEMON_OUTCOME_COUNT,
};

/** Word for an outcome, for summaries and JSON ("full", "inconsistent", …). */
const char *daemon_outcome_name(enum daemon_outcome outcome);

/** Whether the walk reached the thread's first function, with or without Lua frames. A chain that
 * is too long to keep is a different case: its sample is not full, and with Lua frames its outcome
 * is DAEMON_TRUNCATED. Cannot fail; stopped window: no. */
bool daemon_outcome_reaches_root(enum daemon_outcome outcome);

/** Times in nanoseconds in buckets of 1/16 octave: quantiles within 5 %, in constant memory. */
struct daemon_histogram {
	uint64_t count, max_ns, sum_ns;
	uint32_t buckets[64 * 16];
};

void daemon_histogram_add(struct daemon_histogram *histogram, uint64_t ns);
/**
 * Estimate a quantile.
 * @param q In [0, 1].
 * @return 0 for an empty histogram.
 */
uint64_t daemon_histogram_quantile(const struct daemon_histogram *histogram, double q);

/** What a process turned out to be. */
enum daemon_process_kind {
	DAEMON_PROCESS_LUAJIT,	  /**< Contains LuaJIT's code. */
	DAEMON_PROCESS_NO_LUAJIT, /**< Has no LuaJIT so far, and is not stopped. */
	DAEMON_PROCESS_DENIED,	  /**< Not permitted, or traced by another process. */
	DAEMON_PROCESS_KIND_COUNT,
};

/** Word for a kind in JSON ("luajit", …). */
const char *daemon_process_kind_name(enum daemon_process_kind kind);

/** One process of a recording. */
struct daemon_process {
	pid_t pid;
	char name[64]; /**< The kernel's name for its last program. */
	uid_t uid;     /**< Its real user. */
	enum daemon_process_kind kind;
	bool ended;
	uint64_t samples;
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
};

/** Most processes that a recording lists. Further ones are recorded, but only counted together. */
enum { DAEMON_PROCESSES_LISTED = 1024 };

/** One trace of a recording. */
struct daemon_trace {
	int32_t pid;
	uint32_t number;
	char *chunk;  /**< Chunk of its first line; the name as the VM stores it, or NULL. */
	int64_t line; /**< 0: unknown. */
	uint64_t samples[FORMAT_COMPILED_COUNT];
};

/** Most traces that a recording lists. Samples of further ones are only counted together. */
enum { DAEMON_TRACES_LISTED = 4096 };

/** The limit that ended a recording, apart from its duration. */
enum daemon_limit { DAEMON_LIMIT_NONE, DAEMON_LIMIT_SAMPLES, DAEMON_LIMIT_BYTES };

/** Most outputs of one recording. */
enum { DAEMON_OUTPUTS_MAX = 16 };

/** The result of one output. */
struct daemon_output_result {
	int32_t errnum; /**< Why it failed; 0: it is complete. */
	uint32_t files; /**< Complete files. */
	uint64_t bytes; /**< Bytes in all its files. */
};

/** How a thread's registers and memory are copied. */
enum daemon_capture {
	DAEMON_CAPTURE_STOP, /**< The thread is stopped for some tens of microseconds. */
	/** The kernel copies them at ticks of the thread's processor time. As an option: no thread
	 * is ever stopped. */
	DAEMON_CAPTURE_KERNEL,
	/** The kernel copies, if that is permitted and possible; but threads that wait and saved
	 * images need other ways. Single threads may be stopped: see enum daemon_reason. */
	DAEMON_CAPTURE_AUTO,
};

/** Why a thread was stopped although the kernel copies others. */
enum daemon_reason {
	DAEMON_REASON_SEARCH,  /**< To read its stack before copies begin. */
	DAEMON_REASON_REFUSED, /**< The kernel does not copy this thread. */
	DAEMON_REASON_LARGE,   /**< Its stacks are larger than a copy. */
	DAEMON_REASON_PARTIAL, /**< Too many of its copies gave a partial chain. */
	DAEMON_REASON_SLOWED,  /**< The kernel now allows fewer samples: for all threads. */
	DAEMON_REASON_COUNT,
};

/** Word for a reason in JSON ("search", "refused", …). */
const char *daemon_reason_name(enum daemon_reason reason);

/** A reason in words for people. */
const char *daemon_reason_text(enum daemon_reason reason);

/** Totals of the stops for one reason. */
struct daemon_stopped {
	uint64_t threads, stops;
	uint64_t samples; /**< Ticks that the samples from these stops represent. */
};

/** A thread that was stopped for one reason. */
struct daemon_stopped_thread {
	pid_t pid, tid;
	enum daemon_reason reason;
	char name[32]; /**< The kernel's name; any bytes. */
	uint64_t samples;
};

/** Most pairs of thread and reason that a recording lists. Further ones are only counted
 * together. */
enum { DAEMON_STOPPED_LISTED = 64 };

/** Numbers of a finished or running recording. */
struct daemon_stats {
	uint64_t samples; /**< Ticks that the profile represents. */
	uint64_t records; /**< Samples that were passed on, each for one or more ticks. */
	uint64_t states[FORMAT_STATE_COUNT]; /**< State of the VM at the samples. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t merged_ticks; /**< Part of missed_ticks: the next sample represents them, too. */
	/** Ticks of all threads, including the merged ones: the sum of all outcomes. */
	uint64_t thread_ticks;
	/** Part of DAEMON_ASLEEP: with a chain to the thread's first function. */
	uint64_t asleep_full;
	/** Threads that entered a system call just before the stop; most calls restart. */
	uint64_t interrupted_calls;
	uint64_t frames, native_frames;
	uint64_t decode_ns; /**< Unwinding, walking and naming, for all samples. */
	uint64_t native_ns; /**< Part of decode_ns: native unwinding. */
	uint64_t cpu_ns;    /**< Processor time of the recorder without the writer. */
	uint64_t elapsed_ns, first_sample_ns;
	/** In the order of the options' outputs. */
	struct daemon_output_result outputs[DAEMON_OUTPUTS_MAX];
	enum daemon_limit limit;
	uint64_t dropped; /**< Samples that a live session did not receive in time. */
	/** stopped: from the interrupt to the release, including the thread's wait for a processor.
	 * held: the part in which the thread was stopped. */
	struct daemon_histogram stopped, held;
	/** What the kernel spent on each copy, without the interrupt itself. */
	struct daemon_histogram copied;
	uint64_t late_copies; /**< Copies that ended early, because their time was over. */
	/** With kernel samples: processor time of the threads at the times of the polls. Threads
	 * are polled when they have ticks without copies. */
	uint64_t ran_ns;
	enum daemon_capture capture; /**< What the recording did, never DAEMON_CAPTURE_AUTO. */
	/** With DAEMON_CAPTURE_KERNEL: threads that were stopped nevertheless, in the order of
	 * their first such stop. */
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	struct daemon_stopped_thread stopped_threads[DAEMON_STOPPED_LISTED];
	size_t stopped_thread_count;
	/** In the order of discovery; freed by daemon_stats_deinit(). */
	struct daemon_process *processes;
	size_t process_count;
	uint64_t unlisted_processes; /**< Found when the list was full. */
	/** In the order of discovery; freed by daemon_stats_deinit(). */
	struct daemon_trace *traces;
	size_t trace_count, trace_size;
	uint64_t unlisted_trace_samples; /**< Samples of traces that are not in the list. */
};

void daemon_stats_deinit(struct daemon_stats *stats);

#endif
