/* SPDX-License-Identifier: MIT */
/* What do processes do while they run? */
#ifndef DAEMON_LIVE_H
#define DAEMON_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record.h"
#include "format/live.h"

/*
 * A live session. The sampler is a separate process that keeps the privileges. The caller, which
 * has the terminal, gives up its own. Samples arrive over a socket. The sampler never waits for the
 * caller: it drops the samples that the caller does not receive in time, and counts them.
 *
 * 	daemon_live_start()			forks the sampler; gives up privileges
 * 	loop:	poll() for daemon_live_fd() and keys
 * 		daemon_live_take()		counts new samples; never waits
 * 		each delay: daemon_live_refresh(), then draw from
 * 			daemon_live_profile()	the tables, format_live_query() ...
 * 			daemon_live_header()	the header
 * 			daemon_live_history()	the sparklines
 * 	daemon_live_destroy()			ends the sampler
 */
struct daemon_live;

/** What a VM is and does, updated twice a second. */
struct daemon_vm {
	pid_t pid;
	uint64_t G;	  /**< Address of its global_State. */
	char version[64]; /**< jit.version, safe for a terminal; "" unknown. */
	char fork[16];	  /**< "LuaJIT", "OpenResty" or "Tarantool"; "" unknown. */
	char layout[160]; /**< Text of luastate_describe_layout(). */
	bool has_heap;
	/** Bytes in use, and bytes at which the collector resumes. */
	uint64_t heap_bytes, threshold_bytes;
	unsigned gc_phase; /**< enum luastate_gc_phase; daemon_gc_phase_name() names it. */
	bool has_pace;
	/** collectgarbage("setpause") and ("setstepmul"), in %. */
	uint32_t pause, step_multiplier;
	bool has_allocated; /**< Its build counts allocated bytes; Tarantool's does. */
	uint64_t allocated_bytes;
	bool has_traces;
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; bytes of machine code areas in use. */
	/** Counts since the live session began. They are minimums, because polls miss short-lived
	 * traces. A build that counts aborts (is_counted) gives the exact number of aborts. */
	bool is_counted;
	uint64_t created, aborted;
};

/** What the header shows. */
struct daemon_live_header {
	unsigned rate_hz;
	uint64_t elapsed_ns; /**< Duration of the sampling. */
	uint64_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t stopped_p50_ns, stopped_p99_ns, stopped_max_ns;
	/** As in struct daemon_stats; so are reasons and copied_p99_ns. */
	enum daemon_capture capture;
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	uint64_t copied_p99_ns;
	uint64_t cpu_ns;		  /**< Processor time of the sampler. */
	uint64_t own_cpu_ns;		  /**< Processor time of this process. */
	uint64_t dropped;		  /**< Samples that this process did not receive in time. */
	struct daemon_process *processes; /**< Names are safe for a terminal. */
	size_t process_count;
	uint64_t *start_ns; /**< Start time of each process by CLOCK_BOOTTIME; 0: unknown. */
	uint64_t unlisted_processes;
	struct daemon_vm *vms;
	size_t vm_count;
	char notice[512];      /**< The newest notice; "": none. */
	uint64_t notice_count; /**< Advances with each notice. */
	bool ended;	       /**< The sampler has ended; its samples remain. */
	enum daemon_end end;   /**< How it ended. */
	char text[512];	       /**< Message for people; "" if the caller ended it. */
};

/** One refresh in the history: what happened since the previous one. */
struct daemon_history_point {
	uint64_t time_ns; /**< CLOCK_MONOTONIC. */
	uint64_t span_ns;
	uint32_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	/** Sums of all VMs: bytes in use, and bytes allocated since the previous refresh. */
	uint64_t heap_bytes, allocated_bytes;
	uint64_t traces, mcode_bytes, created, aborted;
	uint64_t sampler_cpu_ns, own_cpu_ns;
	bool has_allocated;
};

/** Refreshes that the history holds. */
enum { DAEMON_HISTORY = 600 };

/** Name a phase: "pause", "propagate", "atomic", "sweep string", "sweep" or "finalize"; "?" for any
 * other number. */
const char *daemon_gc_phase_name(unsigned phase);

/**
 * Start a live session. Returns at once; the header later says whether the processes can be
 * sampled.
 * @param options Borrowed for the call. Ignores output, format, progress, notice and go_fd. With
 * names, the session continues after all processes have ended, and samples new ones.
 * @param live Borrowed for the call; may be NULL.
 * @return 0, or -1 if the sampler did not start.
 */
int daemon_live_start(const struct daemon_options *options, const struct format_live_options *live,
		      struct daemon_live **ret_session, struct failure *why);

/** End the sampler, which first lets go of all threads. */
void daemon_live_destroy(struct daemon_live *session);

/** Descriptor to poll for input; -1 after the sampler has ended. */
int daemon_live_fd(const struct daemon_live *session);

/**
 * Count the samples that have arrived. Never waits, and returns after some milliseconds even if
 * more data is ready.
 * @return 1 if more data may be ready, else 0; -1 with FAILURE_NO_MEMORY.
 */
int daemon_live_take(struct daemon_live *session, struct failure *why);

/** Move the window forward and add a point to the history. */
int daemon_live_refresh(struct daemon_live *session, struct failure *why);

/** The tables; borrowed. */
struct format_live *daemon_live_profile(struct daemon_live *session);

/** The newest numbers; borrowed until the next daemon_live_take(). */
const struct daemon_live_header *daemon_live_header(const struct daemon_live *session);

/**
 * Get one of the last refreshes.
 * @param age 0 is the newest.
 * @return Borrowed; NULL if the history is shorter.
 */
const struct daemon_history_point *daemon_live_history(const struct daemon_live *session,
						       size_t age);

#endif
