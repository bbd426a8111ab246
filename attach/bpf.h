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
 * Copies of threads that run on. At each tick of a thread's processor time the kernel runs a
 * program of ours (BPF) in the timer's interrupt, which copies registers and memory as the thread's
 * plan says. Nobody is stopped, traced or woken, and a thread that sleeps has no ticks. Memory that
 * is paged out is left out.
 *
 * Needs Linux 5.17, CAP_BPF and CAP_PERFMON, or root. Stopped window: none; the copy itself takes
 * the thread some microseconds.
 */
struct attach_sampler;

/** The kernel's side as it was compiled: an ELF file, in memory that is aligned to 8 bytes.
 *  attach/bpf_program.h has what it shares with the loader. */
struct attach_sampler_object {
	const void *bytes;
	size_t len; /**< 0: ljprof was built without it. */
};

/**
 * Load the kernel's side, and try it on the caller. Nothing is mapped yet, so that a child of the
 * caller has no copies.
 * @param object Borrowed for the call.
 * @param rate_hz Ticks a second of processor time.
 * @param why FAILURE_DENIED; FAILURE_LIMIT where the kernel allows too few samples a second, with
 *            what kernel.perf_event_max_sample_rate has to be as the address; FAILURE_SYSTEM with
 *            ENOSYS where ljprof was built without, else with what the kernel says.
 */
int attach_sampler_create(const struct attach_sampler_object *object, unsigned rate_hz,
			  struct attach_sampler **ret_sampler, struct failure *why);
/** With all its threads: none of them is copied any more. */
void attach_sampler_destroy(struct attach_sampler *sampler);

/** What an event is opened for. */
struct attach_sampler_request {
	pid_t pid, tid;
	uint64_t period_ns; /**< Processor time between two ticks. */
	uint64_t cookie;    /**< What the kernel's side knows the thread by. */
};

/** An event of a thread's processor time, and the kernel's side bound to it; not enabled yet. */
struct attach_sampler_event {
	int event_fd, link_fd;
};

/** The cookie of an event that is none of a thread's. */
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
/** Its thread has no ticks any more, unless another process has descriptors of it too. */
void attach_sampler_close_event(const struct attach_sampler_event *event);

/** What came of a request; the event is open where why.kind is FAILURE_NONE. */
struct attach_sampler_answer {
	uint64_t cookie; /**< Of the request. */
	struct attach_sampler_event event;
	struct failure why;
};

/** Who opens events for a sampler, where not its own process does: many may be asked for before the
 * first one is there. */
struct attach_sampler_opener {
	/** Ask for an event; does not wait. @param why FAILURE_TIMEOUT: too many are asked for, and
	 *  it is to be asked for again later. FAILURE_SYSTEM. @return 0 or -1. */
	int (*ask)(void *context, const struct attach_sampler_request *request,
		   struct failure *why);
	/** The next answer. Waits for it up to a time of CLOCK_MONOTONIC.
	 *  @param ret_answer Its event is the caller's.
	 *  @return 1; 0 where there is none yet; -1, with @p why, where none will come. */
	int (*take)(void *context, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		    struct failure *why);
	void *context;
};

/** The program that runs at each tick. Borrowed. */
int attach_sampler_program(const struct attach_sampler *sampler);

/** Map what the kernel's side shares, once, before threads are added; until then there are no
 * copies.
 *  @param opener Copied; NULL: this process opens events itself.
 *  @param why FAILURE_NO_MEMORY, FAILURE_SYSTEM. @return 0 or -1. */
int attach_sampler_begin(struct attach_sampler *sampler, const struct attach_sampler_opener *opener,
			 struct failure *why);

/**
 * Copy a thread from now on, for the first time after a random part of the period. It runs on
 * meanwhile, and is neither stopped nor woken. Does not wait: with an opener the event is asked
 * for, and the copies begin with attach_sampler_take_events().
 * @param context What take() is given for it.
 * A copy takes some microseconds, and ends after a millisecond or the plan's budget, as interrupts
 * of the processor wait for it.
 * @param first Head of the plan to begin with; the program's part follows it. Its cookie, counts
 *              and other times do not matter.
 * @param ret_plan Head of the thread's plan. Borrowed until attach_sampler_remove(); to be changed
 *                 at any time.
 * @param why FAILURE_GONE, FAILURE_DENIED, FAILURE_LIMIT, FAILURE_SYSTEM; FAILURE_TIMEOUT: the
 *            opener is asked for too many already, and this one is to be added later.
 */
int attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
		       const struct attach_sampler_plan *first,
		       struct attach_sampler_plan **ret_plan, struct failure *why);

/** A thread has no event, and is to be removed. @param thread The context of attach_sampler_add().
 *  @param why As there; FAILURE_TIMEOUT: nothing came of it within a second. */
typedef void attach_sampler_refused(void *context, void *thread, const struct failure *why);

/** Begin the copies of threads whose events are there by now. Waits for those that are not up to
 *  a time of CLOCK_MONOTONIC; 0: not at all. @return How many are still asked for. */
size_t attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
				  attach_sampler_refused *refused, void *context);

/** Copy it no more; copies that were not taken are forgotten. */
void attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan);

/** Make no more copies of the threads that are there; those that were made stay to be drained. No
 *  thread needs to be stopped. */
void attach_sampler_end(struct attach_sampler *sampler);

/** The program's table of what is known already: its known_table. Borrowed; all 0 at first. */
void *attach_sampler_known(struct attach_sampler *sampler);

/** How a copy was made. */
struct attach_sampler_timing {
	uint64_t time_ns; /**< Of the tick, by CLOCK_MONOTONIC. */
	uint64_t took_ns; /**< What the thread waited for it, but for the interrupt itself. */
	uint64_t lost;	  /**< Ticks of the thread before this one for which there was no room. */
	uint32_t changed; /**< Ticks that are lost behind it, as its timer was changed. */
	/** It may lack something that was there: there are bounds. */
	bool is_truncated;
	/** The same, as its time was over: by chance, where the machine was held up. */
	bool is_late;
};

/** Takes a copy. @param thread The context of attach_sampler_add(). @return false: the copies
 * behind this one stay for the next time. */
typedef bool attach_sampler_take(void *context, void *thread,
				 const struct attach_sampler_timing *timing);

/**
 * Take all copies that were made since the last time, in the order of their ticks; most often none
 * that are made meanwhile.
 * @param image Holds each of them in turn.
 * @return false where @p take did.
 */
bool attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
			  attach_sampler_take *take, void *context);

/** Whether the last drain found more than half of the room full. */
bool attach_sampler_is_filling(const struct attach_sampler *sampler);

/** Whether the kernel allows too few samples a second by now, as it was seen with the last copies:
 *  it looks every thousand ticks. Ticks are lost then that no plan counts. */
bool attach_sampler_is_slowed(const struct attach_sampler *sampler);

#endif
