/* SPDX-License-Identifier: MIT */
/* How does the kernel copy threads while they run? */
#ifndef ATTACH_BPF_H
#define ATTACH_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/bpf_program.h"
#include "attach/image.h"

/**
 * A BPF sampler: it copies threads while they run. At each tick of a thread's processor time, the
 * kernel runs our BPF program in the timer's interrupt. The program copies registers and memory as
 * the thread's plan says. It stops, traces and wakes no thread. A thread that sleeps has no ticks.
 * The program leaves out memory that is paged out.
 *
 * Needs Linux 5.17, and CAP_BPF and CAP_PERFMON, or root. Stopped window: none; a copy takes some
 * microseconds of the thread's time.
 */
struct attach_sampler;

/**
 * The compiled BPF program: an ELF file in memory, aligned to 8 bytes. attach/bpf_program.h
 * declares what it shares with the loader.
 */
struct attach_sampler_object {
	const void *bytes;
	size_t len; /**< 0: ljprof was built without it. */
};

/**
 * Load the BPF program and try it on the caller. Maps no memory yet, so a child of the caller
 * inherits none.
 * @param object Borrowed for the call.
 * @param rate_hz Ticks a second of processor time.
 * @param why FAILURE_DENIED; FAILURE_LIMIT: the kernel allows too few samples a second, and the
 * address field has the needed value of kernel.perf_event_max_sample_rate; FAILURE_SYSTEM: the
 * kernel's errno, or ENOSYS if ljprof was built without BPF.
 */
int attach_sampler_create(const struct attach_sampler_object *object, unsigned rate_hz,
			  struct attach_sampler **ret_sampler, struct failure *why);
/** Release a sampler and the events of all its threads. */
void attach_sampler_destroy(struct attach_sampler *sampler);

/** A request for an event. */
struct attach_sampler_request {
	pid_t pid, tid;
	uint64_t period_ns; /**< Processor time between two ticks. */
	uint64_t cookie;    /**< The BPF program finds the thread by this number. */
};

/**
 * An event that counts a thread's processor time, with the BPF program bound to it; not enabled
 * yet.
 */
struct attach_sampler_event {
	int event_fd, link_fd;
};

/** The cookie of an event that belongs to no slot. */
#define ATTACH_SAMPLER_NO_COOKIE UINT64_MAX

/**
 * Open an event with the rights of the caller. Keeps nothing of the thread waiting.
 * @param program_fd attach_sampler_program().
 * @param ret_event Release with attach_sampler_close_event().
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_SYSTEM. @return 0 or -1.
 * Source: perf_event_open(2); Linux v5.15, kernel/bpf/syscall.c, bpf_perf_link_attach().
 */
int attach_sampler_open_event(int program_fd, const struct attach_sampler_request *request,
			      struct attach_sampler_event *ret_event, struct failure *why);
/**
 * Close an event. The thread's ticks end, unless another process also has the event's descriptors.
 */
void attach_sampler_close_event(const struct attach_sampler_event *event);

/** The answer to a request; the event is open if why.kind is FAILURE_NONE. */
struct attach_sampler_answer {
	uint64_t cookie; /**< The request's cookie. */
	struct attach_sampler_event event;
	struct failure why;
};

/**
 * Opens events in another process for a sampler. The sampler may send many requests before the
 * first answer arrives.
 */
struct attach_sampler_opener {
	/**
	 * Ask for an event; does not wait.
	 * @param why FAILURE_TIMEOUT: too many requests are pending, ask again later.
	 * FAILURE_SYSTEM.
	 * @return 0 or -1.
	 */
	int (*ask)(void *context, const struct attach_sampler_request *request,
		   struct failure *why);
	/**
	 * Get the next answer. Waits for it until a time of CLOCK_MONOTONIC.
	 * @param ret_answer The caller owns its event.
	 * @return 1; 0 if no answer has arrived; -1, with @p why, if none will arrive.
	 */
	int (*take)(void *context, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		    struct failure *why);
	void *context;
};

/** The program that runs at each tick. Borrowed. */
int attach_sampler_program(const struct attach_sampler *sampler);

/**
 * Map the memory that the BPF program shares. Call it once, before threads are added; no copies are
 * made before.
 * @param opener Copied; NULL: this process opens events itself.
 * @param why FAILURE_NO_MEMORY, FAILURE_SYSTEM. @return 0 or -1.
 */
int attach_sampler_begin(struct attach_sampler *sampler, const struct attach_sampler_opener *opener,
			 struct failure *why);

/**
 * Copy a thread from now on, for the first time after a random part of the period. The thread keeps
 * running: this function neither stops nor wakes it. Does not wait: with an opener it sends a
 * request, and attach_sampler_take_events() starts the copies.
 *
 * A copy takes some microseconds. It ends after the plan's budget, or a millisecond if the plan has
 * none, because the processor's interrupts wait for it.
 * @param context attach_sampler_take and attach_sampler_refused receive it.
 * @param first The plan to start with: its head, then the program's part. Its cookie, counts and
 * other times are ignored.
 * @param ret_plan Head of the thread's plan. Borrowed until attach_sampler_remove(); the caller may
 * change it at any time.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_LIMIT, FAILURE_SYSTEM; FAILURE_TIMEOUT: the
 * opener has too many pending requests, add the thread later.
 */
int attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
		       const struct attach_sampler_plan *first,
		       struct attach_sampler_plan **ret_plan, struct failure *why);

/**
 * A thread got no event; the callee removes the thread.
 * @param thread The context of attach_sampler_add().
 * @param why As for attach_sampler_add(); FAILURE_TIMEOUT: no answer within a second.
 */
typedef void attach_sampler_refused(void *context, void *thread, const struct failure *why);

/**
 * Start the copies of threads whose events have arrived. Waits for the other events until a time of
 * CLOCK_MONOTONIC; 0: does not wait.
 * @return How many requests are still pending.
 */
size_t attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
				  attach_sampler_refused *refused, void *context);

/** Stop copying a thread, and discard its copies that were not drained. */
void attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan);

/**
 * Stop copying all threads; existing copies can still be drained. No thread needs to be stopped.
 */
void attach_sampler_end(struct attach_sampler *sampler);

/** The BPF program's known_table, which it shares with its user. Borrowed; all 0 at first. */
void *attach_sampler_known(struct attach_sampler *sampler);

/** How a copy was made. */
struct attach_sampler_timing {
	uint64_t time_ns; /**< The tick, in CLOCK_MONOTONIC. */
	uint64_t took_ns; /**< How long the thread waited for the copy, without the interrupt
			     itself. */
	uint64_t lost;	  /**< Ticks of the thread before this one that found no room. */
	uint32_t changed; /**< Ticks after this one that were lost because the timer's period
			     changed. */
	/** The copy may be incomplete because it reached a limit of size. */
	bool is_truncated;
	/** The copy may be incomplete because its time ran out, for example on a busy machine. */
	bool is_late;
};

/**
 * Receives a copy. @param thread The context of attach_sampler_add(). @return false: keep the
 * following copies for the next drain.
 */
typedef bool attach_sampler_take(void *context, void *thread,
				 const struct attach_sampler_timing *timing);

/**
 * Hand over all copies since the last drain, in the order of their ticks. Copies that are made
 * during a drain mostly wait for the next one.
 * @param image Holds each copy in turn.
 * @return false if @p take returned false.
 */
bool attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
			  attach_sampler_take *take, void *context);

/** @return The part of the ring that the last drain found in use, from 0; above 1 if copies came in
 *  meanwhile. */
double attach_sampler_fill(const struct attach_sampler *sampler);

/**
 * Whether the kernel now allows too few samples a second: ticks are lost then that no plan counts.
 * Drains update it, once in about a thousand periods.
 */
bool attach_sampler_is_slowed(const struct attach_sampler *sampler);

#endif
