/* SPDX-License-Identifier: MIT */
/* Private to attach: threads that the kernel copies while they run. */
#ifndef ATTACH_BPF_SAMPLER_INTERNAL_H
#define ATTACH_BPF_SAMPLER_INTERNAL_H

#include "attach/bpf.h"

struct bpf_object;
struct bpf_program;
struct ring_buffer;

/** Parts of a copy of which there are more to come, from one processor. */
struct sampler_parts {
	uint64_t cookie, time_ns;
	unsigned next; /* 0: none */
	bool is_short; /* some had no room */
	uint8_t *bytes;
	size_t len, size;
};

/** One thread. */
struct sampler_slot {
	uint64_t generation; /* 0: never used */
	bool used;
	bool is_first;	   /* the first period goes on */
	uint64_t asked_ns; /* since then for its event; 0: it has that */
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
	size_t plan_bytes, known_bytes; /* of one; of all */
	struct sampler_parts *parts;	/* by processor */
	size_t processors;
	struct sampler_slot slots[ATTACH_SAMPLER_THREADS];
	size_t asked; /* of them */
	size_t next, ring_bytes, drained_bytes;
	unsigned rate_hz;
	unsigned limit_hz; /* of the kernel; high enough for the rate */
	bool is_slowed;	   /* it is not any more */
	uint64_t period_ns, limit_ns, random;
	/* Of the drain that goes on. */
	struct attach_image *image;
	attach_sampler_take *take;
	void *context;
	uint64_t begin_ns;
};

/** The plan of a thread, by the number of its slot. */
struct attach_sampler_plan *sampler_plan_at(struct attach_sampler *sampler, size_t index);

/** The thread that a copy or an answer is of. @return NULL where it is watched no more. */
struct sampler_slot *sampler_slot_of(struct attach_sampler *sampler, uint64_t cookie);

/* ---- Pace (sampler_rate.c) -------------------------------------------------------------- */

/** What the kernel has to allow for a rate, and what it allows: UINT_MAX where that is not known.
 */
unsigned sampler_needed_limit(unsigned rate_hz);
unsigned sampler_read_limit(void);

/** Read it again, now and then. */
void sampler_watch_limit(struct attach_sampler *sampler);

/** Begin to choose periods at random. */
void sampler_begin_pace(struct attach_sampler *sampler, unsigned rate_hz, unsigned limit_hz);

/** A random part of the period: threads that live for less would never have a tick otherwise. */
uint64_t sampler_first_period(struct attach_sampler *sampler);

/** Behind a thread's tick, change its period now and then. @return the ticks that are lost by that.
 */
uint32_t sampler_change_period(struct attach_sampler *sampler, struct sampler_slot *slot,
			       struct attach_sampler_plan *plan);

/* ---- Copies (sampler_copies.c) and threads (sampler_threads.c) -------------------------- */

/** A record of the ring, as libbpf hands it over. @param self The sampler. @return 0 to go on. */
int sampler_take_record(void *self, void *bytes, size_t len);

/** Try an event of our own thread: what refuses those of others may refuse that, too. */
int sampler_try_event(struct attach_sampler *sampler, struct failure *why);

/** End the events of all threads. */
void sampler_end_events(struct attach_sampler *sampler);

#endif
