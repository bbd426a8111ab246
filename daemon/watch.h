/* SPDX-License-Identifier: MIT */
/* What do processes do, while they run? */
#ifndef DAEMON_WATCH_H
#define DAEMON_WATCH_H

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
 *	daemon_watch_start()	forks the sampler; gives up privileges
 *	loop: poll() for daemon_watch_fd() and keys
 *		daemon_watch_take()	counts what has come; never waits
 *		each delay: daemon_watch_refresh(), then draw from
 *			daemon_watch_profile()	the tables, format_live_query() ...
 *			daemon_watch_vitals()	the header
 *			daemon_watch_history()	the sparklines
 *	daemon_watch_destroy()	ends the sampler
 */
struct daemon_watch;

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
struct daemon_vitals {
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
struct daemon_moment {
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
 * Begin to watch. Returns at once; whether the processes can be sampled comes with the vitals.
 * @param options Of these, output, format, progress, notice and go_fd do not count. With names, a
 * watch goes on where no process is left, for those that come later. Borrowed for the call.
 * @param live Borrowed for the call; may be NULL.
 * @return 0, or -1: the sampler could not be started.
 */
int daemon_watch_start(const struct daemon_options *options, const struct format_live_options *live,
		       struct daemon_watch **ret_watch, struct failure *why);

/** End the sampler, which lets go of all threads first. */
void daemon_watch_destroy(struct daemon_watch *watch);

/** To be polled for input; -1 once the sampler has ended. */
int daemon_watch_fd(const struct daemon_watch *watch);

/** Count what has come. Never waits, and returns after some milliseconds where much is there.
 *  @return 1 where there may be more at once, else 0; -1 with FAILURE_NO_MEMORY. */
int daemon_watch_take(struct daemon_watch *watch, struct failure *why);

/** A refresh: moves the window on, adds to the history. */
int daemon_watch_refresh(struct daemon_watch *watch, struct failure *why);

/** The tables; borrowed. */
struct format_live *daemon_watch_profile(struct daemon_watch *watch);

/** The newest numbers; borrowed until the next daemon_watch_take(). */
const struct daemon_vitals *daemon_watch_vitals(const struct daemon_watch *watch);

/** The last refreshes. @param age 0 is the newest. @return NULL behind the oldest. Borrowed. */
const struct daemon_moment *daemon_watch_history(const struct daemon_watch *watch, size_t age);

#endif
