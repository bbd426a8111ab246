/* SPDX-License-Identifier: MIT */
/* What do processes do, while they run? */
#ifndef DAEMON_LIVE_H
#define DAEMON_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record.h"
#include "format/live.h"

/*
 * A live view: the sampler is a process of its own, with the privileges; the caller, which has the
 * terminal, gives up its own. Samples come over a socket. The sampler never waits for the caller:
 * what that does not take in time is dropped, and counted.
 *
 *	daemon_live_start()	forks the sampler; gives up privileges
 *	loop: poll() for daemon_live_fd() and keys
 *		daemon_live_take()	counts what has come; never waits
 *		each delay: daemon_live_refresh(), then draw from
 *			daemon_live_profile()	the tables, format_live_query() ...
 *			daemon_live_header()	the header
 *			daemon_live_history()	the sparklines
 *	daemon_live_destroy()	ends the sampler
 */
struct daemon_live;

/** What a VM is and does, a few times a second. */
struct daemon_vm {
	pid_t pid;
	uint64_t G;	  /**< Address of its global_State. */
	char version[64]; /**< jit.version, fit for a terminal; "" unknown. */
	char layout[160]; /**< As luastate_describe_layout() has it. */
	bool has_heap;
	uint64_t heap_bytes, threshold_bytes; /**< In use; at which the collector works on. */
	unsigned gc_phase; /**< enum luastate_gc_phase; daemon_gc_phase_name(). */
	bool has_pace;
	uint32_t pause, step_multiplier; /**< collectgarbage("setpause"), ("setstepmul"), in %. */
	bool has_allocated; /**< Its build counts what is allocated; Tarantool's does. */
	uint64_t allocated_bytes;
	bool has_traces;
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; machine code areas in use. */
	/** Since the watch began: what was seen of them, so at least this many. Builds that count
	 * aborts (is_counted) tell all. */
	bool is_counted;
	uint64_t created, aborted;
};

/** What the header shows. */
struct daemon_live_header {
	unsigned rate_hz;
	uint64_t elapsed_ns; /**< Of the sampling. */
	uint64_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t compiled[FORMAT_COMPILED_COUNT];
	uint64_t ticks, late_ticks, missed_ticks;
	uint64_t stopped_p50_ns, stopped_p99_ns, stopped_max_ns;
	enum daemon_capture capture; /**< As in struct daemon_stats, and so are both of these. */
	struct daemon_stopped reasons[DAEMON_REASON_COUNT];
	uint64_t copied_p99_ns;
	uint64_t cpu_ns;		  /**< Of the sampler. */
	uint64_t own_cpu_ns;		  /**< Of this process. */
	uint64_t dropped;		  /**< Samples that were not taken in time. */
	struct daemon_process *processes; /**< Names are fit for a terminal. */
	size_t process_count;
	uint64_t *start_ns; /**< By process: when it began, by CLOCK_BOOTTIME; 0 unknown. */
	uint64_t unlisted_processes;
	struct daemon_vm *vms;
	size_t vm_count;
	char notice[512];      /**< The newest; "" none. */
	uint64_t notice_count; /**< Advances with each. */
	bool ended;	       /**< The sampler has ended; what was sampled stays. */
	enum daemon_end end;   /**< And how. */
	char text[512];	       /**< For people; "" where it was asked to. */
};

/** One refresh in the history: what happened since the one before. */
struct daemon_history_point {
	uint64_t time_ns; /**< CLOCK_MONOTONIC. */
	uint64_t span_ns;
	uint32_t samples, states[FORMAT_STATE_COUNT], outcomes[DAEMON_OUTCOME_COUNT];
	uint64_t heap_bytes, allocated_bytes; /**< All VMs: in use; allocated meanwhile. */
	uint64_t traces, mcode_bytes, created, aborted;
	uint64_t sampler_cpu_ns, own_cpu_ns;
	bool has_allocated;
};

/** Refreshes that the history holds. */
enum { DAEMON_HISTORY = 600 };

/** "pause", "propagate", "atomic", "sweep string", "sweep", "finalize"; "?" for what is none. */
const char *daemon_gc_phase_name(unsigned phase);

/**
 * Begin to watch. Returns at once; whether the processes can be sampled comes with the header.
 * @param options Of these, output, format, progress, notice and go_fd do not count. With names, a
 * watch goes on where no process is left, for those that come later. Borrowed for the call.
 * @param live Borrowed for the call; may be NULL.
 * @return 0, or -1: the sampler could not be started.
 */
int daemon_live_start(const struct daemon_options *options, const struct format_live_options *live,
		      struct daemon_live **ret_session, struct failure *why);

/** End the sampler, which lets go of all threads first. */
void daemon_live_destroy(struct daemon_live *session);

/** To be polled for input; -1 once the sampler has ended. */
int daemon_live_fd(const struct daemon_live *session);

/** Count what has come. Never waits, and returns after some milliseconds where much is there.
 *  @return 1 where there may be more at once, else 0; -1 with FAILURE_NO_MEMORY. */
int daemon_live_take(struct daemon_live *session, struct failure *why);

/** A refresh: moves the window on, adds to the history. */
int daemon_live_refresh(struct daemon_live *session, struct failure *why);

/** The tables; borrowed. */
struct format_live *daemon_live_profile(struct daemon_live *session);

/** The newest numbers; borrowed until the next daemon_live_take(). */
const struct daemon_live_header *daemon_live_header(const struct daemon_live *session);

/** The last refreshes. @param age 0 is the newest. @return NULL behind the oldest. Borrowed. */
const struct daemon_history_point *daemon_live_history(const struct daemon_live *session,
						       size_t age);

#endif
