/* SPDX-License-Identifier: MIT */
/* What do the BPF sampler's files share? Private to attach. */
#ifndef ATTACH_BPF_SAMPLER_INTERNAL_H
#define ATTACH_BPF_SAMPLER_INTERNAL_H

#include "attach/bpf.h"

struct bpf_object;
struct bpf_program;
struct ring_buffer;

/** The parts so far of a copy from one processor, while more parts follow. */
struct sampler_parts {
	uint64_t cookie, time_ns;
	unsigned next; /* 0: no part is expected */
	bool is_short; /* memory ran out */
	uint8_t *bytes;
	size_t len, size;
};

/** A thread. */
struct sampler_slot {
	uint64_t generation; /* 0: never used */
	bool used;
	bool is_first;	   /* the random first period is in force */
	uint64_t asked_ns; /* when the event was asked for; 0: no request is pending */
	pid_t tid;
	unsigned periods;
	struct attach_sampler_event event;
	void *context;
};

struct attach_sampler {
	struct bpf_object *object;
	struct bpf_program *program;
	struct attach_sampler_opener opener;
	struct ring_buffer *ring;
	uint8_t *plans;
	void *known;
	size_t plan_bytes, known_bytes; /* of one plan; of the whole table */
	struct sampler_parts *parts;	/* by processor */
	size_t processors;
	struct sampler_slot slots[ATTACH_SAMPLER_THREADS];
	size_t asked; /* slots with a pending request */
	size_t next, ring_bytes, drained_bytes;
	unsigned rate_hz;
	unsigned limit_hz; /* of the kernel; high enough for the rate */
	bool is_slowed;	   /* the kernel's limit is now too low for the rate */
	uint64_t period_ns, limit_ns, random;
	/* The current drain. */
	struct attach_image *image;
	attach_sampler_take *take;
	void *context;
	uint64_t begin_ns;
};

/** The plan of a slot. */
struct attach_sampler_plan *sampler_plan_at(struct attach_sampler *sampler, size_t index);

/** The slot with a cookie. @return NULL if its thread was removed. */
struct sampler_slot *sampler_slot_of(struct attach_sampler *sampler, uint64_t cookie);

/* ---- Pace (sampler_rate.c) -------------------------------------------------------------- */

/**
 * The samples a second that the kernel must allow for a rate, and those that it allows; UINT_MAX if
 * that is unknown.
 */
unsigned sampler_needed_limit(unsigned rate_hz);
unsigned sampler_read_limit(void);

/** Read the kernel's limit again, at most once in LIMIT_PERIODS. */
void sampler_watch_limit(struct attach_sampler *sampler);

/** Start the choice of random periods. */
void sampler_begin_pace(struct attach_sampler *sampler, unsigned rate_hz, unsigned limit_hz);

/**
 * The first period of a new thread: random, so that threads that live for less than a period have
 * ticks too.
 */
uint64_t sampler_first_period(struct attach_sampler *sampler);

/**
 * After a thread's tick, change its period if it is time to. @return How many ticks the change
 * loses.
 */
uint32_t sampler_change_period(struct attach_sampler *sampler, struct sampler_slot *slot,
			       struct attach_sampler_plan *plan);

/* ---- Copies (sampler_copies.c) and threads (sampler_threads.c) -------------------------- */

/** Handle a record of the ring; libbpf calls it. @param self The sampler. @return 0 to continue. */
int sampler_take_record(void *self, void *bytes, size_t len);

/** Open an event for our own thread and close it: shows early whether the kernel refuses events. */
int sampler_try_event(struct attach_sampler *sampler, struct failure *why);

/** End the events of all threads. */
void sampler_end_events(struct attach_sampler *sampler);

#endif
