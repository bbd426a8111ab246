/* SPDX-License-Identifier: MIT */
/*
 * What is recorded, how, and how does the recording end?
 *
 * The recorder is a loop. It samples threads at the ticks of a clock, merges native and Lua frames
 * into one chain, and passes finished samples to a writer process.
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
	DAEMON_MODE_DEFAULT,   /**< Only counters of VM states: samples without frames. */
	DAEMON_MODE_LEAF,      /**< The leaf frame of each of the two stacks. */
	DAEMON_MODE_CALLGRAPH, /**< Full chains. */
};

/** One output. */
struct daemon_output {
	const char *path; /**< Path, or "-" for standard output. */
	const struct format_writer_ops *format;
	bool gzip; /**< Compress, in addition to what the format itself does. */
};

/** What to record. Strings are borrowed. */
struct daemon_options {
	const pid_t *pids; /**< Processes to record. */
	size_t pid_count;
	/** POSIX extended regular expressions. Also record each process whose command or program
	 * matches one, now or later. */
	const char *const *names;
	size_t name_count;
	/** How long to wait for a process with a VM; 0: do not wait. */
	double wait_s;
	/** Also record all descendants, including later ones. */
	bool children;
	bool process_root;		     /**< Begin each chain with a frame for its process. */
	const struct daemon_output *outputs; /**< Outputs, which all receive the same samples. */
	size_t output_count;		     /**< At most DAEMON_OUTPUTS_MAX. */
	/** Each output is a series of files with a new file every rotate_s. The file's start time
	 * is in its name, before the ending. 0: one file. */
	double rotate_s;
	unsigned keep; /**< How many files of each series to keep, newest first; 0: all. */
	/** A signal that the caller has blocked. When it arrives, the outputs receive all samples
	 * so far; a series starts new files. 0: none. */
	int snapshot_signal;
	/** Stop after this many samples, or bytes of an output; 0: no limit. */
	uint64_t limit_samples, limit_bytes;
	struct format_options format_options;
	enum daemon_mode mode;
	enum daemon_capture capture;
	unsigned rate_hz;	 /**< 1 to 10000. */
	bool wall;		 /**< Also sample threads that wait. */
	double duration_s;	 /**< 0: until stopped. */
	const char *save_images; /**< Folder for images of all stops, or NULL. */
	bool debuginfod;	 /**< Fetch debug files before the recording begins. */
	bool await_vm;		 /**< pids[0] is a command that just started: wait for its VM. */
	int go_fd;		 /**< Written to and closed when the recorder is ready, or -1. */
	int failed_fd;		 /**< Becomes readable if the command could not be run, or -1. */
	/** Samples go to a live session over this socket, not to an output; private to daemon. */
	bool feeds;
	int channel_fd;
	const volatile sig_atomic_t *stop; /**< Set by the caller to end the recording. */
	/** Called about four times a second; may be NULL. */
	void (*progress)(void *context, const struct daemon_stats *stats);
	/** Called with one line about a process that is left out while others are recorded. */
	void (*notice)(void *context, const char *text);
	void *context;
};

/** How a recording ended; each end except the first two is an error. */
enum daemon_end {
	DAEMON_END_STOPPED, /**< By request, or the duration is over. */
	/** All processes have ended, or run other programs; the profile is complete. */
	DAEMON_END_TARGET,
	DAEMON_END_DENIED, /**< Not permitted, or traced by another process. */
	DAEMON_END_NO_VM,  /**< No LuaJIT in any process. */
	DAEMON_END_OUTPUT, /**< The output failed; what was written is readable. */
	DAEMON_END_EARLY,  /**< No such process, or all ended before the first sample. */
	DAEMON_END_SYSTEM, /**< Something else failed. */
	DAEMON_END_EMPTY,  /**< A command ran and ended, and the profile has no sample. */
};

/**
 * Record until a request to stop, until the duration is over, or until a failure.
 *
 * At each tick, either the kernel copies the running threads of all processes, or the recorder
 * polls the threads and stops those that run. No thread stays stopped or attached. A process that
 * cannot be recorded ends the recording only if no other is left.
 * @param ret_stats Always filled; release with daemon_stats_deinit().
 * @param ret_text Message for people if the end is not DAEMON_END_STOPPED; @p len bytes.
 */
enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len);

#endif
