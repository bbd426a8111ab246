/* SPDX-License-Identifier: MIT */
/*
 * What is recorded, how, and how did that end?
 *
 * The recorder: a loop that takes samples of threads at the ticks of a clock, merges native and
 * guest frames into one chain, and hands finished samples to a writer process.
 */
#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/stats.h"
#include "format/writer.h"

/** How much of each sample is kept. Source: Tarantool's sysprof RFC, "modes". */
enum daemon_mode {
	DAEMON_MODE_DEFAULT,   /**< Counters of VM states only: samples without frames. */
	DAEMON_MODE_LEAF,      /**< The leaf frame of each of the two stacks. */
	DAEMON_MODE_CALLGRAPH, /**< Whole chains. */
};

/** One output. */
struct daemon_output {
	const char *path; /**< Or "-" for standard output. */
	const struct format_writer_ops *format;
	bool gzip; /**< Compressed, beside what the format itself does. */
};

/** What to record. Strings are borrowed. */
struct daemon_options {
	const pid_t *pids; /**< Processes that are to be recorded. */
	size_t pid_count;
	/** And those whose command or program matches one of these POSIX extended regular
	 * expressions, when the recording begins or later. */
	const char *const *names;
	size_t name_count;
	/** How long to wait for a process with a VM; 0: not at all. */
	double wait_s;
	bool children;			     /**< And all their descendants, those of later too. */
	bool process_root;		     /**< Each chain begins with a frame for its process. */
	const struct daemon_output *outputs; /**< All with the same samples. */
	size_t output_count;		     /**< At most DAEMON_OUTPUTS_MAX. */
	/** Each output is a series of files, a new one every rotate_s, with the time at which it
	 * begins before the end of its name; 0: one file. */
	double rotate_s;
	unsigned keep; /**< Of each series, the newest ones; 0: all. */
	/** A signal that the caller has blocked: when it comes, what was recorded so far is to be
	 * in the outputs; of a series new files begin. 0: none. */
	int snapshot_signal;
	/** Stop after this many samples, or bytes of an output; 0: no limit. */
	uint64_t limit_samples, limit_bytes;
	struct format_options format_options;
	enum daemon_mode mode;
	enum daemon_capture capture;
	unsigned rate_hz;	 /**< 1 to 10000. */
	bool wall;		 /**< Threads that wait are sampled, too. */
	double duration_s;	 /**< 0: until stopped. */
	const char *save_images; /**< Folder for images of all stops, or NULL. */
	bool debuginfod;	 /**< Fetch debug files before the recording begins. */
	bool await_vm;		 /**< pids[0] is a command just started: wait for its VM. */
	int go_fd;		 /**< Written to and closed once the recorder is ready, or -1. */
	int failed_fd; /**< Has something to read if the command could not be run, or -1. */
	/** Samples go to a watch over this socket, not to an output; private to daemon. */
	bool feeds;
	int channel_fd;
	const volatile sig_atomic_t *stop; /**< Set to end the recording. */
	/** Called about four times a second; may be NULL. */
	void (*progress)(void *context, const struct daemon_stats *stats);
	/** Called with one line about a process that is left out while others are recorded. */
	void (*notice)(void *context, const char *text);
	void *context;
};

/** How a recording ended; each but the first two is an error. */
enum daemon_end {
	DAEMON_END_STOPPED, /**< Asked to, or the duration is over. */
	DAEMON_END_TARGET,  /**< All processes have ended, or run other programs; the profile is
				 whole. */
	DAEMON_END_DENIED,  /**< Not permitted, or traced by another process. */
	DAEMON_END_NO_VM,   /**< No LuaJIT in any process. */
	DAEMON_END_OUTPUT,  /**< The output failed; what was written is readable. */
	DAEMON_END_EARLY,   /**< No such process, or all ended before the first sample. */
	DAEMON_END_SYSTEM,  /**< Something else failed. */
	DAEMON_END_EMPTY,   /**< A command has run and ended, and the profile has no sample. */
};

/**
 * Record until asked to stop, until the duration is over, or until something ends it.
 *
 * At each tick the kernel copies all threads of all processes that run, or they are looked at and
 * stopped; nothing stays stopped or attached. A process that cannot be recorded ends the recording
 * only if no other is left.
 * @param ret_stats Filled in any case; release with daemon_stats_deinit().
 * @param ret_text Message for people where the end is not DAEMON_END_STOPPED; @p len bytes.
 */
enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len);

#endif
