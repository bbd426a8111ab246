/* SPDX-License-Identifier: MIT */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/*
 * When is what sampled?
 *
 * The recorder: a loop that stops threads at the ticks of a clock, merges native and guest frames
 * into one chain, and hands finished samples to a writer process.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"
#include "format/format.h"

/** How much of each sample is kept. Source: Tarantool's sysprof RFC, "modes". */
enum daemon_mode {
	DAEMON_MODE_DEFAULT,   /**< Counters of VM states only: samples without frames. */
	DAEMON_MODE_LEAF,      /**< The leaf frame of each of the two stacks. */
	DAEMON_MODE_CALLGRAPH, /**< Whole chains. */
};

/** What became of a look at a thread. */
enum daemon_outcome {
	DAEMON_FULL = 0,  /**< A chain from the leaf to the thread's first function. */
	DAEMON_TORN,	  /**< Partial: the VM was in a state that cannot be walked. */
	DAEMON_TRUNCATED, /**< Partial: a stack is longer than what was copied. */
	DAEMON_UNWOUND,	  /**< Partial: native code without unwind information. */
	DAEMON_NO_VM,	  /**< No VM frame on the native stack. */
	DAEMON_IDLE,	  /**< Blocked, not interrupted. */
	DAEMON_EXITED,	  /**< Thread ended. */
	DAEMON_BUSY,	  /**< Held by another tracer. */
	DAEMON_FAILED,	  /**< Not stopped or not read. */
	DAEMON_OUTCOME_COUNT,
};

/** Word for an outcome, as used in summaries and in JSON ("full", "torn", …). */
const char *daemon_outcome_name(enum daemon_outcome outcome);

/** Times in nanoseconds in buckets of 1/16 octave: quantiles within 5 %, in constant memory. */
struct daemon_histogram {
	uint64_t count, max_ns, sum_ns;
	uint32_t buckets[64 * 16];
};

void daemon_histogram_add(struct daemon_histogram *histogram, uint64_t ns);
/** @param q In [0, 1]. @return 0 for an empty histogram. */
uint64_t daemon_histogram_quantile(const struct daemon_histogram *histogram, double q);

/** Numbers of a finished or running recording. */
struct daemon_stats {
	uint64_t samples; /**< Written to the profile. */
	uint64_t states[FORMAT_STATE_COUNT];
	uint64_t outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t interrupted_calls; /**< Threads that entered a system call just before the stop. */
	uint64_t frames, native_frames;
	uint64_t decode_ns; /**< Unwinding, walking and naming, all samples. */
	uint64_t native_ns; /**< Part of it: native unwinding. */
	uint64_t cpu_ns;    /**< Processor time of the recorder, writer not included. */
	uint64_t elapsed_ns, first_sample_ns;
	uint64_t output_bytes;
	/** From the interrupt to the release, which holds what a thread waited for a processor; and
	 * the part of it in which the thread stood still for us. */
	struct daemon_histogram stopped, held;
};

/** What to record. Strings are borrowed. */
struct daemon_options {
	pid_t pid;
	const char *output; /**< Path, or "-" for standard output. */
	const struct format_writer_ops *format;
	struct format_options format_options;
	enum daemon_mode mode;
	unsigned rate_hz;	 /**< 1 to 10000. */
	double duration_s;	 /**< 0: until stopped. */
	const char *save_images; /**< Folder for images of all stops, or NULL. */
	bool await_vm;		 /**< Wait for a VM to appear (a command just started). */
	int go_fd;		 /**< Written to and closed once the recorder is ready, or -1. */
	const volatile sig_atomic_t *stop; /**< Set to end the recording. */
	/** Called about four times a second; may be NULL. */
	void (*progress)(void *context, const struct daemon_stats *stats);
	void *context;
};

/** How a recording ended; each but the first two is an error. */
enum daemon_end {
	DAEMON_END_STOPPED, /**< Asked to, or the duration is over. */
	DAEMON_END_TARGET,  /**< The target ended or runs another program; the profile is whole. */
	DAEMON_END_DENIED,  /**< Not permitted, or traced by another process. */
	DAEMON_END_NO_VM,   /**< No LuaJIT in the process. */
	DAEMON_END_OUTPUT,  /**< The output failed; what was written is readable. */
	DAEMON_END_EARLY,   /**< The target ended before the first sample. */
	DAEMON_END_SYSTEM,  /**< Something else failed. */
};

/**
 * Record until asked to stop, until the duration is over, or until something ends it.
 *
 * Stops threads of the target one at a time; nothing stays stopped or attached.
 * @param ret_stats Filled in any case.
 * @param ret_text Message for people where the end is not DAEMON_END_STOPPED; @p len bytes.
 */
enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len);

/* ---- Decoding on its own, for images ---------------------------------------------------- */

/** Names of functions and the state of one target's decoding. */
struct daemon_target;
struct attach_image;

/** Decode a saved image: the same code as while recording. The sample's frames are valid until the
 *  next call. @param ret_functions Table of the functions that frames refer to. */
struct daemon_replay;
int daemon_replay_create(struct daemon_replay **ret_replay, struct failure *why);
void daemon_replay_destroy(struct daemon_replay *replay);
int daemon_replay_image(struct daemon_replay *replay, struct attach_image *image,
			struct format_sample *ret_sample, enum daemon_outcome *ret_outcome,
			struct failure *why);
const struct format_functions *daemon_replay_functions(const struct daemon_replay *replay);

#endif
