/* SPDX-License-Identifier: MIT */
/*
 * What does a BPF program that copies threads share with its loader? Seen by the compiler for the
 * kernel's machine too: fixed types alone.
 *
 * The program is called sampler_tick, and runs at each tick of a thread. Its maps:
 * - plans: an array of ATTACH_SAMPLER_THREADS plans, to be mapped. Each begins with struct
 *   attach_sampler_plan; the program alone knows what follows.
 * - known_table: an array to be mapped; the program alone knows its form.
 * - works: an array with one entry; as many as there are processors once it is loaded.
 * - records: a ring of struct attach_sampler_record; its size is set when it is loaded.
 */
#ifndef ATTACH_BPF_PROGRAM_H
#define ATTACH_BPF_PROGRAM_H

#include <stdint.h>

enum {
	/* Threads at a time. A power of 2. */
	ATTACH_SAMPLER_THREADS = 1024,
	/* Of a record. Powers of 2. */
	ATTACH_SAMPLER_BYTES = 65536,
	ATTACH_SAMPLER_PIECE = 16384,
	/* Records of one thread at one tick: room for 1.5 MiB of stacks. */
	ATTACH_SAMPLER_PARTS = 32,
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	ATTACH_SAMPLER_REGISTERS = 21,
#else
	ATTACH_SAMPLER_REGISTERS = 34,
#endif
};

/**
 * How a plan begins: when a thread is copied. The kernel's side may read a plan while it is
 * written: what it copies then is of no use, but harmless.
 */
struct attach_sampler_plan {
	uint64_t cookie;  /**< That of the thread whose plan it is. */
	uint64_t rest_ns; /**< Nothing is copied before this time. */
	/** Of the timer, if that is less than what lies between two copies; 0: each of its ticks is
	 * one of ours. */
	uint64_t tick_ns;
	uint64_t period_ns; /**< Between two copies, with tick_ns. */
	uint64_t budget_ns; /**< A copy that takes longer ends there, and is cut. */
	/* Written by the kernel's side: ticks at which it rested, those for which there was no
	 * room, and with tick_ns what has passed since the last copy. */
	uint64_t skipped, lost, passed_ns;
};

/** In front of the bytes of a range, which end with padding to a multiple of 8. */
struct attach_sampler_range {
	uint64_t start;
	uint32_t len;
	uint32_t unused;
};

/** One thread at one tick, or a part of that; of the bytes only the first len are handed over: one
 *  range behind the other. Parts of others may come in between, but not of the same processor. */
struct attach_sampler_record {
	uint64_t cookie;
	uint64_t time_ns, took_ns; /**< CLOCK_MONOTONIC. */
	uint64_t lost;		   /**< As the plan has it at this tick. */
	/** As the kernel keeps them: struct pt_regs. */
	uint64_t registers[ATTACH_SAMPLER_REGISTERS];
	uint32_t len;
	uint16_t is_truncated; /**< As there are bounds, it may lack something that was there. */
	uint16_t is_late;      /**< The same, as its time was over. */
	uint32_t processor;
	uint16_t part;	   /**< From 0 on. */
	uint16_t has_more; /**< Another part follows, with what this one does not tell yet. */
	/** Those behind ATTACH_SAMPLER_BYTES are slack for the last range. */
	uint8_t bytes[ATTACH_SAMPLER_BYTES + sizeof(struct attach_sampler_range) +
		      ATTACH_SAMPLER_PIECE];
};

#endif
