/* SPDX-License-Identifier: MIT */
/* The numbers of a recording. */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/sample.h"

/** The outcome of a tick of a thread: each tick has one of these. */
enum daemon_outcome {
	DAEMON_FULL = 0,    /**< A chain from the leaf to the thread's first function. */
	DAEMON_TORN,	    /**< Partial: the VM was in a state that cannot be walked. */
	DAEMON_TRUNCATED,   /**< Partial: a stack is longer than what was copied. */
	DAEMON_UNWOUND,	    /**< Partial: native code without unwind information. */
	DAEMON_NO_VM,	    /**< No VM frame on the native stack. */
	DAEMON_IDLE,	    /**< Blocked: not interrupted, and not in the profile. */
	DAEMON_ASLEEP,	    /**< Blocked: its stack is read without a stop. */
	DAEMON_UNSCHEDULED, /**< Ready to run, but without a processor. */
	DAEMON_RESTED,	    /**< Not looked at, as it has never run Lua: it is from time to time. */
	DAEMON_EXITED,	    /**< Thread ended. */
	DAEMON_BUSY,	    /**< Held by another tracer. */
	DAEMON_FAILED,	    /**< Not stopped or not read. */
	DAEMON_OUTCOME_COUNT,
};

/** Word for an outcome, as used in summaries and in JSON ("full", "torn", …). */
const char *daemon_outcome_name(enum daemon_outcome outcome);

/** Whether the walk came to the thread's first function, through Lua or without any. That a
 * chain is too long to be kept whole is another thing: its sample is not full, and one through Lua
 * is DAEMON_TRUNCATED. It cannot fail; stopped window: no. */
bool daemon_outcome_reaches_root(enum daemon_outcome outcome);

/** Times in nanoseconds in buckets of 1/16 octave: quantiles within 5 %, in constant memory. */
struct daemon_histogram {
	uint64_t count, max_ns, sum_ns;
	uint32_t buckets[64 * 16];
};

void daemon_histogram_add(struct daemon_histogram *histogram, uint64_t ns);
/** @param q In [0, 1]. @return 0 for an empty histogram. */
uint64_t daemon_histogram_quantile(const struct daemon_histogram *histogram, double q);

/** What a process turned out to be. */
enum daemon_process_kind {
	DAEMON_PROCESS_LUAJIT,	  /**< Holds LuaJIT's code. */
	DAEMON_PROCESS_NO_LUAJIT, /**< Has none so far, and is not stopped. */
	DAEMON_PROCESS_DENIED,	  /**< Not permitted, or held by another tracer. */
	DAEMON_PROCESS_KIND_COUNT,
};

/** Word for a kind, as used in JSON ("luajit", …). */
const char *daemon_process_kind_name(enum daemon_process_kind kind);

/** One process of a recording. */
struct daemon_process {
	pid_t pid;
	char name[64]; /**< The kernel's name for its last program. */
	enum daemon_process_kind kind;
	bool ended;
	uint64_t samples;
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
};

/** Processes that a recording lists; those beyond are recorded, but counted together only. */
enum { DAEMON_PROCESSES_LISTED = 1024 };

/** One trace of a recording. */
struct daemon_trace {
	int32_t pid;
	uint32_t number;
	char *chunk;  /**< Where it starts; the name as the VM stores it, or NULL. */
	int64_t line; /**< 0 unknown. */
	uint64_t samples[FORMAT_COMPILED_COUNT];
};

/** Traces that a recording lists; samples of those beyond are counted together only. */
enum { DAEMON_TRACES_LISTED = 4096 };

/** What a recording was stopped by, beside its duration. */
enum daemon_limit { DAEMON_LIMIT_NONE, DAEMON_LIMIT_SAMPLES, DAEMON_LIMIT_BYTES };

/** Outputs of one recording. */
enum { DAEMON_OUTPUTS_MAX = 16 };

/** The result of one output. */
struct daemon_output_result {
	int32_t errnum; /**< Why it failed; 0: it is complete. */
	uint32_t files; /**< That are complete. */
	uint64_t bytes; /**< In all its files. */
};

/** How a thread's registers and memory are taken. */
enum daemon_capture {
	DAEMON_CAPTURE_STOP, /**< It is stopped for some tens of microseconds. */
	/** The kernel copies them at ticks of its processor time. Asked for, it means that no
	 * thread is ever stopped. */
	DAEMON_CAPTURE_KERNEL,
	/** The kernel, where that is permitted and possible, but for threads that wait and for
	 * images that are saved. Single threads may be stopped: see enum daemon_reason. */
	DAEMON_CAPTURE_AUTO,
};

/** Why a thread was stopped although the kernel copies others. */
enum daemon_reason {
	DAEMON_REASON_SEARCH,  /**< For a look at its stack, before copies begin. */
	DAEMON_REASON_REFUSED, /**< The kernel does not copy this thread. */
	DAEMON_REASON_LARGE,   /**< Its stacks are larger than a copy. */
	DAEMON_REASON_PARTIAL, /**< Too many chains of its copies were not whole. */
	DAEMON_REASON_SLOWED,  /**< The kernel allows fewer samples by now: for all threads. */
	DAEMON_REASON_COUNT,
};

/** Word for a reason, as used in JSON ("search", "refused", …). */
const char *daemon_reason_name(enum daemon_reason reason);

/** The same in words for people. */
const char *daemon_reason_text(enum daemon_reason reason);

/** What was stopped for one reason. */
struct daemon_stopped {
	uint64_t threads, stops;
	uint64_t samples; /**< Ticks that the samples from these stops stand for. */
};

/** A thread that was stopped for one reason. */
struct daemon_stopped_thread {
	pid_t pid, tid;
	enum daemon_reason reason;
	char name[32]; /**< The kernel's; any bytes. */
	uint64_t samples;
};

/** Threads with reasons that a recording lists; those beyond are counted together only. */
enum { DAEMON_STOPPED_LISTED = 64 };

/** Numbers of a finished or running recording. */
struct daemon_stats {
	uint64_t samples; /**< Ticks that the profile stands for. */
	uint64_t records; /**< Samples that were handed over, each for one or more ticks. */
	uint64_t states[FORMAT_STATE_COUNT]; /**< Where the thread ran. */
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t merged_ticks; /**< Of those missed: the next look stands for them, too. */
	/** Ticks of all threads, with those that were merged: the sum of all outcomes. */
	uint64_t thread_ticks;
	uint64_t asleep_full; /**< Of DAEMON_ASLEEP: with a chain to the thread's first function. */
	uint64_t interrupted_calls; /**< Threads that entered a system call just before the stop;
				       most calls begin again. */
	uint64_t frames, native_frames;
	uint64_t decode_ns; /**< Unwinding, walking and naming, all samples. */
	uint64_t native_ns; /**< Part of it: native unwinding. */
	uint64_t cpu_ns;    /**< Processor time of the recorder, writer not included. */
	uint64_t elapsed_ns, first_sample_ns;
	/** In the order of the options' outputs. */
	struct daemon_output_result outputs[DAEMON_OUTPUTS_MAX];
	enum daemon_limit limit;
	uint64_t dropped; /**< Samples that a watch did not take in time. */
	/** From the interrupt to the release, which holds what a thread waited for a processor; and
	 * the part of it in which the thread stood still for us. */
	struct daemon_histogram stopped, held;
	/** What the kernel took for each of its copies, the interrupt itself not included. */
	struct daemon_histogram copied;
	uint64_t late_copies; /**< That ended early, as their time was over. */
	/** With copies by the kernel: processor time that threads used, as far as it was looked at,
	 * which it is where they have ticks without copies. */
	uint64_t ran_ns;
	enum daemon_capture capture; /**< What was done, never DAEMON_CAPTURE_AUTO. */
	/** With DAEMON_CAPTURE_KERNEL: what was stopped all the same; the threads in the order in
	 * which that began. */
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	struct daemon_stopped_thread stopped_threads[DAEMON_STOPPED_LISTED];
	size_t stopped_thread_count;
	/** In the order in which they were found; freed by daemon_stats_deinit(). */
	struct daemon_process *processes;
	size_t process_count;
	uint64_t unlisted_processes; /**< Found when the list was full. */
	/** In the order in which they were met; freed by daemon_stats_deinit(). */
	struct daemon_trace *traces;
	size_t trace_count, trace_size;
	uint64_t unlisted_trace_samples; /**< Of traces that are not in the list. */
};

void daemon_stats_deinit(struct daemon_stats *stats);

#endif
