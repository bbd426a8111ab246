/* SPDX-License-Identifier: MIT */
/* What does a BPF program that copies threads share with its loader? The BPF compiler reads this
 * header too, so it has only types of fixed size.
 *
 * The program is called sampler_tick, and runs at each tick of a thread. Its maps:
 * - plans: an array of ATTACH_SAMPLER_THREADS plans, to be mapped. Each begins with struct
 *   attach_sampler_plan; only the program knows what follows.
 * - known_table: an array to be mapped; only the program knows its form.
 * - works: an array with one entry; the loader gives it one entry per processor.
 * - records: a ring of struct attach_sampler_record; the loader sets its size.
 */
#ifndef ATTACH_BPF_PROGRAM_H
#define ATTACH_BPF_PROGRAM_H

#include <stdint.h>

enum {
	/* Threads at a time. A power of 2. */
	ATTACH_SAMPLER_THREADS = 1024,
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	ATTACH_SAMPLER_REGISTERS = 21,
#else
	ATTACH_SAMPLER_REGISTERS = 34,
#endif
};

/* Bytes of a record, and of a piece of it: powers of 2. Records of one thread at one tick. A copy
 * outside of the kernel has fewer, larger records. */
enum {
#if defined(ATTACH_SAMPLER_LARGE)
	ATTACH_SAMPLER_BYTES = 1 << 20,
	ATTACH_SAMPLER_PIECE = 65536,
	ATTACH_SAMPLER_PARTS = 16,
#else
	ATTACH_SAMPLER_BYTES = 65536,
	ATTACH_SAMPLER_PIECE = 16384,
	ATTACH_SAMPLER_PARTS = 32, /* room for 1.5 MiB of stacks */
#endif
};

/**
 * The head of a plan: when a thread is copied. The BPF program may read a plan while it is written;
 * the copy is then useless, but harmless.
 */
struct attach_sampler_plan {
	uint64_t cookie;  /**< The thread's cookie; 0: none. */
	uint64_t rest_ns; /**< The program copies nothing before this time. */
	/**
	 * The timer's period, if it is shorter than the time between two copies; 0: each tick of
	 * the timer makes a copy.
	 */
	uint64_t tick_ns;
	uint64_t period_ns; /**< Time between two copies; used with tick_ns. */
	uint64_t budget_ns; /**< A copy that takes longer ends there, and is truncated. */
	/* The BPF program writes these: ticks that it skipped because of rest_ns, ticks that found
	 * no room, and, with tick_ns, the time since the last copy. */
	uint64_t skipped, lost, passed_ns;
};

/** The head of a range; its bytes follow, padded to a multiple of 8. */
struct attach_sampler_range {
	uint64_t start;
	uint32_t len;
	uint32_t unused;
};

/**
 * One thread at one tick, or a part of it. Only the first len bytes are handed over, one range
 * after the other. Parts of other records may come in between, but never from the same processor.
 */
struct attach_sampler_record {
	uint64_t cookie;
	uint64_t time_ns, took_ns; /**< CLOCK_MONOTONIC. */
	uint64_t lost;		   /**< The plan's count at this tick. */
	/** In the kernel's order: struct pt_regs. */
	uint64_t registers[ATTACH_SAMPLER_REGISTERS];
	uint32_t len;
	uint16_t is_truncated; /**< A limit of size was reached: the copy may be incomplete. */
	uint16_t is_late;      /**< The time ran out: the copy may be incomplete. */
	uint32_t processor;
	uint16_t part;	   /**< Counts from 0. */
	uint16_t has_more; /**< Another part of the same copy follows. */
	/** The space beyond ATTACH_SAMPLER_BYTES is slack for the last range. */
	uint8_t bytes[ATTACH_SAMPLER_BYTES + sizeof(struct attach_sampler_range) +
		      ATTACH_SAMPLER_PIECE];
};

#endif
